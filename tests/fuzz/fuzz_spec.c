/* SPDX-License-Identifier: Apache-2.0 */
/* The device grammar. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "device/spec.h"

static void require_item(const fl_device_spec *item, size_t length)
{
    fuzz_require(item->column >= 1 && item->column <= length);
    fuzz_require(item->slice_count <= sizeof item->slices / sizeof item->slices[0]);
    fuzz_require(item->team <= FL_TEAM_LIMIT);
    fuzz_require(memchr(item->file, '\0', sizeof item->file) != NULL);
    fuzz_require((item->backend == FILCH_BACKEND_SIM) == (item->file[0] != '\0'));
    for (uint32_t k = 0; k < item->slice_count; k++)
        fuzz_require(item->slices[k] > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fl_device_spec items[FL_SPEC_ITEMS];
    filch_error error = FILCH_ERROR_INIT;
    char *text = fuzz_text(data, size);
    size_t count = SIZE_MAX;
    filch_status status = fl_spec_parse(text, items, &count, &error);

    if (status == FILCH_OK) {
        fuzz_require(count >= 1 && count <= FL_SPEC_ITEMS);
        for (size_t k = 0; k < count; k++)
            require_item(&items[k], strlen(text));
    } else {
        fuzz_require_error(&error, FILCH_PARSE);
        fuzz_require(count == SIZE_MAX && error.line >= 1 &&
                     (size_t)error.line <= strlen(text) + 1);
    }
    free(text);
    return 0;
}
