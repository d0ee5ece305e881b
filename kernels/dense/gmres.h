/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: flexible GMRES for one right side of a system; see mixed.h. */
#ifndef FL_KERNELS_DENSE_GMRES_H
#define FL_KERNELS_DENSE_GMRES_H

#include "kernels/dense/refine.h"

typedef struct fl_gmres fl_gmres;

/* Memory for one column after the other. */
filch_status fl_gmres_open(fl_system *system, fl_gmres **out);
/* Null is allowed. */
void fl_gmres_close(fl_gmres *gmres);
/* Goes on from the solution that is there, or from 0 where that is worse. *is_done: the column
 * reached its goal; else it converges too slowly. */
filch_status fl_gmres_solve(fl_gmres *gmres, size_t col, bool *is_done);

#endif
