/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS PUB 180-4, "Secure Hash Standard", 2015): for names and checksums of files of
 * possibly foreign origin. Tables in memory use base/hash.h. */
#ifndef FL_BASE_SHA256_H
#define FL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define FL_DIGEST_BYTES 32
/* Bytes of a digest in hexadecimal with its terminator. */
#define FL_DIGEST_TEXT (2 * FL_DIGEST_BYTES + 1)

typedef struct fl_digest {
    unsigned char bytes[FL_DIGEST_BYTES];
} fl_digest;

typedef struct fl_sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes added */
    unsigned char block[64];
} fl_sha256;

void fl_sha256_init(fl_sha256 *sha);
void fl_sha256_add(fl_sha256 *sha, const void *data, size_t size);
/* Adds the size as eight bytes, then the data. The size makes a sequence of fields unambiguous. */
void fl_sha256_add_field(fl_sha256 *sha, const void *data, size_t size);
/* Returns the digest. sha must be initialised again before further use. */
fl_digest fl_sha256_finish(fl_sha256 *sha);

void fl_digest_format(const fl_digest *digest, char text[FL_DIGEST_TEXT]);

#endif
