# SPDX-License-Identifier: Apache-2.0
# R, unchanged: products, factors and solves of base R, checked.
set.seed(1)
n <- 300
a <- matrix(rnorm(n * n), n); b <- matrix(rnorm(n * 100), n)
c <- a %*% b
s <- crossprod(a) + diag(n) * n
l <- chol(s)
x <- solve(a, b)
stopifnot(max(abs(crossprod(l) - s)) < 1e-9 * n, max(abs(a %*% x - b)) < 1e-8)
r <- qr(a, LAPACK = TRUE)
d <- chol2inv(l)
stopifnot(max(abs(d %*% s - diag(n))) < 1e-9)
e <- a[1:5, ] %*% b[, 1:5]
stopifnot(max(abs(e - c[1:5, 1:5])) < 1e-10)
cat("R: right\n")
