/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: what lu_panel.cu and qr_panel.cu keep between launches. */
#ifndef FL_KERNELS_DENSE_STATE_H
#define FL_KERNELS_DENSE_STATE_H

/* Words of 32 bits, zero at first: counters; then packets of 4 words, a candidate and a row of 32
 * for each of 256 thread blocks, and a row on top, all of it twice. */
#define FL_LU_PANEL_WORDS (64 + 4 * (2 * 256 * (1 + 32) + 2 * 32))

/* Words of 32 bits, zero at first: counters; then packets of 4 words, two values for each of 32
 * columns and 128 thread blocks, two more for each block, and one for each column, all of it
 * twice. */
#define FL_QR_PANEL_WORDS (64 + 4 * 2 * (2 * 32 * 128 + 2 * 128 + 32))

#endif
