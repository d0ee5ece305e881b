/* SPDX-License-Identifier: Apache-2.0 */
/* The files of compiled kernels. The first byte of an input says whether checksum and key, which no
 * fuzzer can guess, are put right; the file's bytes follow. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "module/disk.h"

#define DIGEST_AT (FL_DISK_HEADER - sizeof(fl_digest))
#define KEY_AT 32

static const fl_digest key = {.bytes = {0xab, 0xcd, 1, 2, 3}};

static void seal(uint8_t *file, size_t size)
{
    fl_digest digest;
    fl_sha256 sha;

    if (size < FL_DISK_HEADER)
        return;
    memcpy(file + KEY_AT, &key, sizeof key);
    memset(file + DIGEST_AT, 0, sizeof digest);
    fl_sha256_init(&sha);
    fl_sha256_add(&sha, file, size);
    digest = fl_sha256_finish(&sha);
    memcpy(file + DIGEST_AT, &digest, sizeof digest);
}

static void read_one(fl_disk *disk, const char *file, size_t size)
{
    fl_disk_info info, checked;
    void *image = NULL;
    filch_status status = fl_disk_read(disk, &key, &info, &image);

    fuzz_require(status == FILCH_OK || status == FILCH_DATA);
    fuzz_require(fl_disk_check(disk, &key, &checked) == status);
    if (status != FILCH_OK)
        return;
    fuzz_require(info.bytes == size - FL_DISK_HEADER && checked.bytes == info.bytes);
    fuzz_require(memchr(info.label, '\0', sizeof info.label) != NULL);
    fuzz_require(info.bytes == 0 || memcmp(image, file + FL_DISK_HEADER, info.bytes) == 0);
    /* What is written back is the file that was read. */
    fl_disk_write(disk, &key, &info, image);
    fl_free(disk->memory, image, info.bytes);
    fuzz_require(fl_disk_check(disk, &key, &checked) == FILCH_OK && checked.bytes == info.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fl_memory memory = fl_memory_system();
    fl_log log = {NULL, NULL, FILCH_LOG_DEFAULT};
    filch_error error = FILCH_ERROR_INIT;
    char digits[FL_DIGEST_TEXT], name[FL_DIGEST_TEXT + 8];
    fl_disk disk;
    char *file;

    if (size == 0)
        return 0;
    file = fuzz_text(data + 1, size - 1);
    if (data[0] % 2 != 0)
        seal((uint8_t *)file, size - 1);
    fl_digest_format(&key, digits);
    (void)snprintf(name, sizeof name, "%s.img", digits);
    (void)fuzz_file(0, name, file, size - 1);
    fuzz_require(fl_disk_open(&disk, &memory, &log, fuzz_folder(), 1 << 20, FL_DISK_EXISTING,
                              &error) == FILCH_OK);
    read_one(&disk, file, size - 1);
    fl_disk_close(&disk);
    free(file);
    return 0;
}
