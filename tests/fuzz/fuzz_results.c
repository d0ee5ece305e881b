/* SPDX-License-Identifier: Apache-2.0 */
/* Result documents, as `filch-bench compare` reads them: two, parted by a zero byte; where there is
 * none the document is compared with itself, and has not become slower. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "report/compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *middle = size > 0 ? memchr(data, 0, size) : NULL;
    size_t first = middle != NULL ? (size_t)(middle - data) : size;
    const char *before = fuzz_file(0, "old", data, first), *after = before;
    filch_error error = FILCH_ERROR_INIT;
    static FILE *nowhere;
    size_t fallen = 0;
    filch_status status;

    if (nowhere == NULL)
        nowhere = fopen("/dev/null", "w");
    fuzz_require(nowhere != NULL);
    if (middle != NULL)
        after = fuzz_file(1, "new", middle + 1, size - first - 1);
    status = bench_compare_files(before, after, nowhere, &fallen, &error);
    if (status != FILCH_OK)
        fuzz_require_error(&error, status);
    else
        fuzz_require(middle != NULL || fallen == 0);
    return 0;
}
