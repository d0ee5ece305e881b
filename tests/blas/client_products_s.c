/* SPDX-License-Identifier: Apache-2.0 */
#define REAL float
#define P(prefix, name) prefix##s##name
#include "client_products.h"

void client_gemm_s(void)
{
    all_gemm();
}

void client_symm_s(void)
{
    all_symm();
}

void client_syrk_s(void)
{
    all_syrk();
}

void client_trmm_s(void)
{
    all_triangle(0);
}

void client_trsm_s(void)
{
    all_triangle(1);
}
