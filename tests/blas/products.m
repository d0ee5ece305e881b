% SPDX-License-Identifier: Apache-2.0
% Octave, unchanged: products, factors and solves, checked.
rand("seed", 1); n = 300;
a = rand(n) - 0.5; b = rand(n, 100);
c = a * b;
s = a * a' + n * eye(n);
l = chol(s);
x = a \ b;
[q, r] = qr(a);
[ll, u, p] = lu(a);
assert(max(max(abs(l' * l - s))) < 1e-9 * n);
assert(max(max(abs(a * x - b))) < 1e-8);
assert(max(max(abs(q * r - a))) < 1e-10);
assert(max(max(abs(ll * u - p * a))) < 1e-10);
f = single(a) * single(b);
assert(max(max(abs(f - c))) < 1e-3);
printf("Octave: right\n");
