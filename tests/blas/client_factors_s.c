/* SPDX-License-Identifier: Apache-2.0 */
#define REAL float
#define P(prefix, name) prefix##s##name
#include "client_factors.h"

void client_potrf_s(void)
{
    all_potrf();
}

void client_getrf_s(void)
{
    all_getrf();
}

void client_geqrf_s(void)
{
    all_geqrf();
}

void client_ormqr_s(void)
{
    all_ormqr();
}

void client_gels_s(void)
{
    all_gels();
}

void client_posv_s(void)
{
    all_posv();
}

void client_gesv_s(void)
{
    all_gesv();
}
