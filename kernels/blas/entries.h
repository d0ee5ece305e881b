/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the entry points of the table under one spelling of their names. A file that includes this
 * once defines before: fl_int, and FL_FORTRAN(name), FL_CBLAS(name), FL_LAPACKE(name) and
 * FL_LAPACKE_WORK(name).
 *
 * Fortran's callers pass the lengths of option letters behind all arguments; those of C may not.
 * Nobody here reads them, but a next BLAS compiled from Fortran may use their place on the stack:
 * it always gets four. */
#include "kernels/blas/copies.h"
#include "kernels/blas/gate.h"

#include <stddef.h>
#include <string.h>

#define FL_EXPORT __attribute__((visibility("default")))
#define FL_CALLER __builtin_return_address(0)
#define FL_LENGTHS , size_t, size_t, size_t, size_t
#define FL_LENGTHS_GIVEN , 1, 1, 1, 1
#define FL_TEXT_OF(name) #name
#define FL_TEXT(name) FL_TEXT_OF(name)

/* A parameter's declaration: Fortran's, CBLAS's, LAPACKE's. */
#define FL_F_O(x) const char *x
#define FL_F_I(x) const fl_int *x
#define FL_F_N_d(x) const double *x
#define FL_F_N_s(x) const float *x
#define FL_B_O(x) int x
#define FL_B_I(x) fl_int x
#define FL_B_N_d(x) double x
#define FL_B_N_s(x) float x
#define FL_E_O(x) char x
#define FL_R_d(x) const double *x
#define FL_R_s(x) const float *x
#define FL_W_d(x) double *x
#define FL_W_s(x) float *x
#define FL_P(x) fl_int *x
#define FL_Q(x) const fl_int *x
/* An argument. */
#define FL_ARGUMENT(x) x
/* A parameter's value, and its place in the call. */
#define FL_DEREF(x) ((double)*(x))
#define FL_VALUE(x) ((double)(x))
#define FL_SET_F_O(x) .x = fl_call_letter(*(x))
#define FL_SET_F_I(x) .x = *(x)
#define FL_SET_B_O(x) .x = fl_call_letter(1000 + (x))
#define FL_SET_E_O(x) .x = fl_call_letter(x)
#define FL_SET_I(x) .x = (x)
#define FL_SET_M(x) .x = (void *)(x)

#define FL_DECLARED_F(p, NAME) \
    FL_##NAME##_PARAMETERS(FL_F_O, FL_F_I, FL_F_N_##p, FL_R_##p, FL_W_##p, FL_P, FL_Q)
#define FL_DECLARED_B(p, NAME) \
    FL_##NAME##_PARAMETERS(FL_B_O, FL_B_I, FL_B_N_##p, FL_R_##p, FL_W_##p, FL_P, FL_Q)
#define FL_DECLARED_E(p, NAME) \
    FL_##NAME##_PARAMETERS(FL_E_O, FL_B_I, FL_B_N_##p, FL_R_##p, FL_W_##p, FL_P, FL_Q)
#define FL_GIVEN(NAME)                                                                      \
    FL_##NAME##_PARAMETERS(FL_ARGUMENT, FL_ARGUMENT, FL_ARGUMENT, FL_ARGUMENT, FL_ARGUMENT, \
                           FL_ARGUMENT, FL_ARGUMENT)
#define FL_SET_F(NAME)                                                                       \
    FL_##NAME##_PARAMETERS(FL_SET_F_O, FL_SET_F_I, FL_SET_F_I, FL_SET_M, FL_SET_M, FL_SET_M, \
                           FL_SET_M)
#define FL_SET_B(NAME) \
    FL_##NAME##_PARAMETERS(FL_SET_B_O, FL_SET_I, FL_SET_I, FL_SET_M, FL_SET_M, FL_SET_M, FL_SET_M)
#define FL_SET_E(NAME) \
    FL_##NAME##_PARAMETERS(FL_SET_E_O, FL_SET_I, FL_SET_I, FL_SET_M, FL_SET_M, FL_SET_M, FL_SET_M)
#define FL_KIND(real, NAME) \
    .routine = FL_BLAS_##NAME, .is_single = sizeof(real) == sizeof(float), .integer = sizeof(fl_int)

/* An entry point without a result. STORE tells LAPACK's info. */
#define FL_ENTRY(symbol, declared, next_declared, next_given, flops, STORE, ...) \
    FL_EXPORT void symbol declared;                                              \
    FL_EXPORT void symbol declared                                               \
    {                                                                            \
        static fl_blas_entry entry = {.name = FL_TEXT(symbol)};                  \
        void *found = fl_next(&entry, FL_CALLER);                                \
        void(*next) next_declared;                                               \
        memcpy(&next, &found, sizeof next);                                      \
        if (fl_gate_is_small(flops) && next) {                                   \
            next next_given;                                                     \
            return;                                                              \
        }                                                                        \
        fl_blas_call call = {__VA_ARGS__};                                       \
        fl_blas_pass pass;                                                       \
        if (!fl_gate_take(&entry, &call, FL_CALLER, &pass)) {                    \
            if (next) {                                                          \
                next next_given;                                                 \
                fl_gate_passed(&call, &pass);                                    \
                return;                                                          \
            }                                                                    \
            fl_next_missing(&entry, &call);                                      \
        }                                                                        \
        STORE                                                                    \
    }

/* An entry point of LAPACKE, whose result is info; STORE tells the rest. */
#define FL_LAPACKE_ENTRY(symbol, check, declared, given, flops, STORE, ...)        \
    FL_EXPORT fl_int symbol declared;                                              \
    FL_EXPORT fl_int symbol declared                                               \
    {                                                                              \
        static fl_blas_entry entry = {.name = FL_TEXT(symbol), .nancheck = check}; \
        void *found = fl_next(&entry, FL_CALLER);                                  \
        fl_int(*next) declared;                                                    \
        memcpy(&next, &found, sizeof next);                                        \
        if (fl_gate_is_small(flops) && next)                                       \
            return next given;                                                     \
        fl_blas_call call = {__VA_ARGS__};                                         \
        fl_blas_pass pass;                                                         \
        if (!fl_gate_take(&entry, &call, FL_CALLER, &pass)) {                      \
            if (next) {                                                            \
                fl_int info = next given;                                          \
                fl_gate_passed(&call, &pass);                                      \
                return info;                                                       \
            }                                                                      \
            fl_next_missing(&entry, &call);                                        \
        }                                                                          \
        STORE                                                                      \
        return (fl_int)call.info;                                                  \
    }

#define FL_FORTRAN_PRODUCT(p, real, name, NAME)                                                  \
    FL_ENTRY(FL_FORTRAN(p##name), (FL_DECLARED_F(p, NAME)), (FL_DECLARED_F(p, NAME) FL_LENGTHS), \
             (FL_GIVEN(NAME) FL_LENGTHS_GIVEN), FL_##NAME##_FLOPS(FL_DEREF), ,                   \
             FL_KIND(real, NAME), FL_SET_F(NAME))
#define FL_CBLAS_PRODUCT(p, real, name, NAME)                                \
    FL_ENTRY(FL_CBLAS(p##name), (int layout, FL_DECLARED_B(p, NAME)),        \
             (int layout, FL_DECLARED_B(p, NAME)), (layout, FL_GIVEN(NAME)), \
             FL_##NAME##_FLOPS(FL_VALUE), , FL_KIND(real, NAME), .layout = layout, FL_SET_B(NAME))

#define FL_INFO *info = (fl_int)call.info;
#define FL_FORTRAN_FACTOR(p, real, name, NAME)                                              \
    FL_ENTRY(FL_FORTRAN(p##name), (FL_DECLARED_F(p, NAME), fl_int * info),                  \
             (FL_DECLARED_F(p, NAME), fl_int * info FL_LENGTHS),                            \
             (FL_GIVEN(NAME), info FL_LENGTHS_GIVEN), FL_##NAME##_FLOPS(FL_DEREF), FL_INFO, \
             FL_KIND(real, NAME), FL_SET_F(NAME))
#define FL_LAPACKE_FACTOR(p, real, name, NAME)                                                     \
    FL_LAPACKE_ENTRY(FL_LAPACKE(p##name), FL_NANCHECK, (int layout, FL_DECLARED_E(p, NAME)),       \
                     (layout, FL_GIVEN(NAME)), FL_##NAME##_FLOPS(FL_VALUE), , FL_KIND(real, NAME), \
                     .layout = layout, FL_SET_E(NAME))
#define FL_LAPACKE_WORK_FACTOR(p, real, name, NAME)                                                \
    FL_LAPACKE_ENTRY(FL_LAPACKE_WORK(p##name), NULL, (int layout, FL_DECLARED_E(p, NAME)),         \
                     (layout, FL_GIVEN(NAME)), FL_##NAME##_FLOPS(FL_VALUE), , FL_KIND(real, NAME), \
                     .layout = layout, FL_SET_E(NAME))

/* Routines with work space, but in LAPACKE's form that makes it. Its first element tells at the end
 * how much is best: filch needs none, so it is the least. */
#define FL_AT(x) (*(x))
#define FL_SELF(x) (x)
#define FL_WORK(real, least) \
    if (call.info == 0)      \
        *work = (real)(least);
#define FL_WORKED(p, real, name, NAME)                                                             \
    FL_ENTRY(FL_FORTRAN(p##name),                                                                  \
             (FL_DECLARED_F(p, NAME), real * work, const fl_int *lwork, fl_int *info),             \
             (FL_DECLARED_F(p, NAME), real * work, const fl_int *lwork, fl_int *info FL_LENGTHS),  \
             (FL_GIVEN(NAME), work, lwork, info FL_LENGTHS_GIVEN), FL_##NAME##_FLOPS(FL_DEREF),    \
             FL_INFO FL_WORK(real, FL_##NAME##_LEAST(FL_AT)), FL_KIND(real, NAME), FL_SET_F(NAME), \
             .is_left = *lwork < FL_##NAME##_LEAST(FL_AT))                                         \
    FL_LAPACKE_FACTOR(p, real, name, NAME)                                                         \
    FL_LAPACKE_ENTRY(FL_LAPACKE_WORK(p##name), NULL,                                               \
                     (int layout, FL_DECLARED_E(p, NAME), real *work, fl_int lwork),               \
                     (layout, FL_GIVEN(NAME), work, lwork), FL_##NAME##_FLOPS(FL_VALUE),           \
                     FL_WORK(real, FL_##NAME##_LEAST(FL_SELF)), FL_KIND(real, NAME),               \
                     .layout = layout, FL_SET_E(NAME),                                             \
                     .is_left = lwork < FL_##NAME##_LEAST(FL_SELF))

/* Copies of vectors: a short one costs one load, by Fortran's names four, and a few comparisons. */
#define FL_COPY_ENTRY(symbol, declared, given, real, vector, count, x_step, y_step)  \
    FL_EXPORT void symbol declared;                                                  \
    FL_EXPORT void symbol declared                                                   \
    {                                                                                \
        static fl_blas_entry entry = {.name = FL_TEXT(symbol)};                      \
        void *found = fl_next(&entry, FL_CALLER);                                    \
        void(*next) declared;                                                        \
        memcpy(&next, &found, sizeof next);                                          \
        const fl_blas_copy copy = {vector, count, x, x_step, y, y_step};             \
        fl_copies_pass pass;                                                         \
        if (!next) {                                                                 \
            fl_copies_make(&copy);                                                   \
        } else if (fl_copies_is_short(copy.n, copy.incx, copy.incy, sizeof(real))) { \
            next given;                                                              \
        } else if (!fl_copies_take(&copy, &pass)) {                                  \
            next given;                                                              \
            fl_copies_passed(&copy, &pass);                                          \
        }                                                                            \
    }
#define FL_COPY(p, real, P)                                                                        \
    FL_COPY_ENTRY(                                                                                 \
        FL_FORTRAN(p##copy),                                                                       \
        (const fl_int *n, const real *x, const fl_int *incx, real *y, const fl_int *incy),         \
        (n, x, incx, y, incy), real, FL_BLAS_PRECISION_##P, *n, *incx, *incy)                      \
    FL_COPY_ENTRY(FL_CBLAS(p##copy), (fl_int n, const real *x, fl_int incx, real *y, fl_int incy), \
                  (n, x, incx, y, incy), real, FL_BLAS_PRECISION_##P, n, incx, incy)

#define FL_NANCHECK FL_TEXT(FL_LAPACKE(get_nancheck))
#define FL_ENTRIES(p, real)                          \
    FL_BLAS_PRODUCTS(FL_FORTRAN_PRODUCT, p, real)    \
    FL_BLAS_PRODUCTS(FL_CBLAS_PRODUCT, p, real)      \
    FL_BLAS_FACTORS(FL_FORTRAN_FACTOR, p, real)      \
    FL_BLAS_FACTORS(FL_LAPACKE_FACTOR, p, real)      \
    FL_BLAS_FACTORS(FL_LAPACKE_WORK_FACTOR, p, real) \
    FL_BLAS_WORKED(FL_WORKED, p, real)

FL_ENTRIES(d, double)
FL_ENTRIES(s, float)
FL_BLAS_PRECISIONS(FL_COPY)
