/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: what lu_panel.cu keeps between launches. */
#ifndef FL_KERNELS_DENSE_STATE_H
#define FL_KERNELS_DENSE_STATE_H

/* Words of 32 bits, zero at first: counters; then in words of 64 a candidate of 4 and a row of 64
 * for each of 256 thread blocks, and a row on top, all of it twice. */
#define FL_LU_PANEL_WORDS (64 + 2 * (2 * 256 * (4 + 64) + 2 * 64))

#endif
