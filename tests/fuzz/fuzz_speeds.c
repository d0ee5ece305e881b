/* SPDX-License-Identifier: Apache-2.0 */
/* The file of speeds of earlier runs. The first byte of an input says whether the checksum, which
 * no fuzzer can guess, is put right; the file's bytes follow. */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/model/speed_file.h"

#define DIGEST_AT (FL_SPEED_FILE_HEADER - sizeof(fl_digest))

static void seal(uint8_t *file, size_t size)
{
    fl_digest digest;
    fl_sha256 sha;

    if (size < FL_SPEED_FILE_HEADER)
        return;
    memset(file + DIGEST_AT, 0, sizeof digest);
    fl_sha256_init(&sha);
    fl_sha256_add(&sha, file, size);
    digest = fl_sha256_finish(&sha);
    memcpy(file + DIGEST_AT, &digest, sizeof digest);
}

/* What was read is sound; with one record more it is saved and read again, with none lost. */
static void require_sound(const fl_speed_file *history, const fl_memory *memory)
{
    fl_record more = {.rate = 2.0, .fixed = 1.0, .most_work = 3.0, .saved = 1, .taken = 1};
    filch_error error = FILCH_ERROR_INIT;
    fl_speed_file again;

    for (size_t k = 0; k < history->count; k++) {
        const fl_record *record = fl_speed_file_find(history, &history->records[k].key);

        fuzz_require(record != NULL && record->rate > 0 && isfinite(record->rate));
    }
    memset(&more.key, 0x5a, sizeof more.key);
    fuzz_require(fl_speed_file_save(history, &more, 1, &error) == FILCH_OK);
    fl_speed_file_open(&again, memory, history->path);
    fuzz_require(again.loaded == FILCH_OK && fl_speed_file_find(&again, &more.key) != NULL);
    for (size_t k = 0; k < history->count && history->count < FL_SPEED_FILE_MOST; k++)
        fuzz_require(fl_speed_file_find(&again, &history->records[k].key) != NULL);
    fl_speed_file_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fl_memory memory = fl_memory_system();
    fl_speed_file history;
    char *file;
    const char *path;

    if (size == 0)
        return 0;
    file = fuzz_text(data + 1, size - 1);
    if (data[0] % 2 != 0)
        seal((uint8_t *)file, size - 1);
    path = fuzz_file(0, "speeds", file, size - 1);
    fl_speed_file_open(&history, &memory, path);
    fuzz_require(history.loaded == FILCH_OK || history.count == 0);
    if (history.loaded == FILCH_OK)
        require_sound(&history, &memory);
    fl_speed_file_close(&history);
    free(file);
    return 0;
}
