/* SPDX-License-Identifier: Apache-2.0 */
#include "micro.h"

#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double micro_median(double *rounds)
{
    qsort(rounds, MICRO_ROUNDS, sizeof *rounds, compare_doubles);
    return rounds[MICRO_ROUNDS / 2];
}

void micro_report(FILE *out, micro_list *list, const char *name, double value, const char *unit)
{
    if (list->count < MICRO_FIGURES_MAX)
        list->figures[list->count++] = (micro_figure){name, value, unit};
    if (out)
        fprintf(out, "%-52s %10.2f %s\n", name, value, unit);
}
