/* SPDX-License-Identifier: Apache-2.0 */
#define REAL double
#define P(prefix, name) prefix##d##name
#include "client_factors.h"

void client_potrf_d(void)
{
    all_potrf();
}

void client_getrf_d(void)
{
    all_getrf();
}

void client_geqrf_d(void)
{
    all_geqrf();
}

void client_ormqr_d(void)
{
    all_ormqr();
}

void client_gels_d(void)
{
    all_gels();
}

void client_posv_d(void)
{
    all_posv();
}

void client_gesv_d(void)
{
    all_gesv();
}
