/* SPDX-License-Identifier: Apache-2.0 */
/* A fuzzer is one file fuzz_NAME.c with LLVMFuzzerTestOneInput, as libFuzzer calls it. Linked with
 * replay.c instead of libFuzzer it runs every file of a folder, with any compiler. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filch/status.h"

/* Always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes with a terminator, in an allocation of exactly that size, so that the address sanitizer
 * sees a read beyond them; for free(). */
char *fuzz_text(const uint8_t *data, size_t size);

/* An empty folder of this process alone, removed with its files when the process exits. */
const char *fuzz_folder(void);
/* Writes folder/name anew; its path, which stays valid until the next call with this name's slot
 * (0 or 1). */
const char *fuzz_file(unsigned slot, const char *name, const void *data, size_t size);

/* Ends the process, so that the fuzzer keeps the input, unless a property holds. */
#define fuzz_require(property) fuzz_require_at((property), #property, __FILE__, __LINE__)
void fuzz_require_at(bool holds, const char *property, const char *file, int line);

/* An error that a refused input left: of this status, with a terminated sentence. */
void fuzz_require_error(const filch_error *error, filch_status status);

#endif
