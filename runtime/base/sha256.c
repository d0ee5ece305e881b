/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <string.h>

/* Section numbers are those of FIPS 180-4. */

static uint32_t rotate(uint32_t word, unsigned count)
{
    return word >> count | word << (32 - count);
}

static uint32_t load_big(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void store_big(unsigned char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * (bytes - 1 - i)));
}

/* Section 6.2.2, with the constants of 4.2.2. */
static void compress(uint32_t state[8], const unsigned char *block)
{
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    uint32_t w[64];

    for (size_t t = 0; t < 16; t++)
        w[t] = load_big(block + 4 * t);
    for (size_t t = 16; t < 64; t++) {
        uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;

        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    for (size_t t = 0; t < 64; t++) {
        uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + k[t] + w[t];
        uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));

        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}

void fl_sha256_init(fl_sha256 *sha)
{
    /* Section 5.3.3. */
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

    memcpy(sha->state, start, sizeof start);
    sha->length = 0;
}

void fl_sha256_add(fl_sha256 *sha, const void *data, size_t size)
{
    const unsigned char *at = data;
    size_t held = (size_t)(sha->length % 64);

    sha->length += size;
    if (held > 0) {
        size_t taken = size < 64 - held ? size : 64 - held;

        if (taken > 0)
            memcpy(sha->block + held, at, taken);
        if (held + taken < 64)
            return;
        compress(sha->state, sha->block);
        at += taken;
        size -= taken;
    }
    for (; size >= 64; at += 64, size -= 64)
        compress(sha->state, at);
    if (size > 0)
        memcpy(sha->block, at, size);
}

void fl_sha256_add_field(fl_sha256 *sha, const void *data, size_t size)
{
    unsigned char length[8];

    store_big(length, size, sizeof length);
    fl_sha256_add(sha, length, sizeof length);
    fl_sha256_add(sha, data, size);
}

fl_digest fl_sha256_finish(fl_sha256 *sha)
{
    static const unsigned char padding[64] = {0x80};
    unsigned char bits[8];
    fl_digest digest;

    /* Section 5.1.1: a one, zeros up to eight bytes before the end of a block, the length in bits.
     */
    store_big(bits, sha->length * 8, sizeof bits);
    fl_sha256_add(sha, padding, 1 + (size_t)((119 - sha->length % 64) % 64));
    fl_sha256_add(sha, bits, sizeof bits);
    for (size_t i = 0; i < 8; i++)
        store_big(digest.bytes + 4 * i, sha->state[i], 4);
    return digest;
}

void fl_digest_format(const fl_digest *digest, char text[FL_DIGEST_TEXT])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < FL_DIGEST_BYTES; i++) {
        text[2 * i] = digits[digest->bytes[i] >> 4];
        text[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    text[2 * FL_DIGEST_BYTES] = '\0';
}
