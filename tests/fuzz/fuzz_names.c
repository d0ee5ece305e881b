/* SPDX-License-Identifier: Apache-2.0 */
/* Names of codelets and devices, as a trace shows them: whatever their bytes, the trace is JSON,
 * and text that is valid UTF-8 comes back unchanged. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *written = NULL;
    json_t *valid = json_string(text), *read; /* null where it is not UTF-8 */
    size_t length = 0;
    FILE *file = open_memstream(&written, &length);

    fuzz_require(file != NULL);
    fputs("[\"", file);
    fl_trace_put_text(file, text);
    fputs("\"]", file);
    fuzz_require(fclose(file) == 0);
    read = json_loadb(written, length, 0, NULL);
    fuzz_require(json_is_string(json_array_get(read, 0)));
    if (valid != NULL)
        fuzz_require(json_equal(valid, json_array_get(read, 0)));
    json_decref(valid);
    json_decref(read);
    free(written);
    free(text);
    return 0;
}
