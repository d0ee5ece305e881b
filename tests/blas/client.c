/* SPDX-License-Identifier: Apache-2.0 */
/* A program that knows nothing of filch: calls BLAS and LAPACK by their Fortran, CBLAS and LAPACKE
 * names with every option, and checks each result by its definition.
 *
 *     client [--sizes N,...] [ROUTINE...]
 *
 * Options are taken one after another, together with sizes, factors and leading dimensions from a
 * generator of fixed seed. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int sizes[16] = {1, 7, 33, 65};
static int size_count = 4;

int client_failures;
long client_calls;

static uint64_t state = 88172645463325252u;

uint64_t client_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

int client_pick(int count)
{
    return (int)(client_random() % (uint64_t)count);
}

int client_size(void)
{
    return sizes[client_pick(size_count)];
}

int client_largest(void)
{
    int most = 0;
    for (int k = 0; k < size_count; k++)
        most = sizes[k] > most ? sizes[k] : most;
    return most;
}

void client_wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    (void)putchar('\n');
    va_end(arguments);
    client_failures++;
}

static void read_sizes(char *list)
{
    size_count = 0;
    for (char *at = strtok(list, ","); at && size_count < 16; at = strtok(NULL, ","))
        sizes[size_count++] = atoi(at);
}

static const struct {
    const char *name;
    void (*run[2])(void);
} tests[] = {
    {"gemm", {client_gemm_d, client_gemm_s}},    {"symm", {client_symm_d, client_symm_s}},
    {"syrk", {client_syrk_d, client_syrk_s}},    {"trmm", {client_trmm_d, client_trmm_s}},
    {"trsm", {client_trsm_d, client_trsm_s}},    {"potrf", {client_potrf_d, client_potrf_s}},
    {"getrf", {client_getrf_d, client_getrf_s}}, {"geqrf", {client_geqrf_d, client_geqrf_s}},
    {"ormqr", {client_ormqr_d, client_ormqr_s}}, {"gels", {client_gels_d, client_gels_s}},
    {"posv", {client_posv_d, client_posv_s}},    {"gesv", {client_gesv_d, client_gesv_s}},
};

int main(int argc, char **argv)
{
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--sizes") == 0) {
        read_sizes(argv[2]);
        first = 3;
    }
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t++) {
        int is_wanted = first == argc;
        for (int k = first; k < argc; k++)
            is_wanted |= strcmp(argv[k], tests[t].name) == 0;
        for (int p = 0; p < 2 && is_wanted; p++)
            tests[t].run[p]();
    }
    printf("%ld calls, %d wrong\n", client_calls, client_failures);
    return client_failures != 0 || client_calls == 0;
}
