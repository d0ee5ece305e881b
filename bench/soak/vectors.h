/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one runtime on devices of the user's choice, GPUs among them: batches of filch's own
 * axpy, whose bits are those of the host wherever they run. */
#ifndef BENCH_SOAK_VECTORS_H
#define BENCH_SOAK_VECTORS_H

#include "soak/soak.h"
#include "soak/watch.h"

void soak_vectors_live(soak *s, soak_watch *watch, uint64_t *random);

#endif
