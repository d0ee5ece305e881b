/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: what lu_panel.cu keeps between launches. */
#ifndef FL_KERNELS_DENSE_STATE_H
#define FL_KERNELS_DENSE_STATE_H

/* Words of 32 bits, zero at first: counters; then packets of 4 words, a candidate and a row of 32
 * for each of 256 thread blocks, and a row on top, all of it twice. */
#define FL_LU_PANEL_WORDS (64 + 4 * (2 * 256 * (1 + 32) + 2 * 32))

#endif
