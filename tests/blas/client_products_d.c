/* SPDX-License-Identifier: Apache-2.0 */
#define REAL double
#define P(prefix, name) prefix##d##name
#include "client_products.h"

void client_gemm_d(void)
{
    all_gemm();
}

void client_symm_d(void)
{
    all_symm();
}

void client_syrk_d(void)
{
    all_syrk();
}

void client_trmm_d(void)
{
    all_triangle(0);
}

void client_trsm_d(void)
{
    all_triangle(1);
}
