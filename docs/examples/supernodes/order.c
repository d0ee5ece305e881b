/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include <stdio.h>

#include "view.h"

bool order_find(const matrix *a, ordering by, int *order, char why[WHY])
{
    cholmod_sparse view = view_make(a);
    cholmod_common common;
    cholmod_start(&common);
    common.print = 0;
    const int found = by == ORDER_METIS ? cholmod_metis(&view, NULL, 0, 1, order, &common)
                                        : cholmod_amd(&view, NULL, 0, order, &common);
    if (!found)
        snprintf(why, WHY, "%s: CHOLMOD's status is %d", by == ORDER_METIS ? "METIS" : "AMD",
                 common.status);
    cholmod_finish(&common);
    return found;
}
