/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes for tables and cache names: equal on every machine, not proof against an adversary.
 *
 * Sources: FNV-1a with 64 bits from G. Fowler, L. C. Noll, K.-P. Vo, D. Eastlake, "The FNV
 * non-cryptographic hash algorithm", IETF draft-eastlake-fnv. The finalizer is variant 13 of D.
 * Stafford, "Better bit mixing", 2011, as in SplitMix64. */
#ifndef FL_BASE_HASH_H
#define FL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Hash of the empty string: start of a chain of fl_hash_bytes. */
#define FL_HASH_START 0xcbf29ce484222325u

/* Extends hash by size bytes; hashing two pieces in turn equals hashing them joined. */
static inline uint64_t fl_hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x00000100000001b3u;
    return hash;
}

/* Extends hash by a text and its terminator, to tell ("ab", "c") from ("a", "bc"). */
static inline uint64_t fl_hash_text(uint64_t hash, const char *text)
{
    const char *at = text;

    do
        hash = fl_hash_bytes(hash, at, 1);
    while (*at++ != '\0');
    return hash;
}

/* Bijection of 64-bit numbers; every input bit moves about half of the output bits. Serves keys
 * that are addresses or counters, and precedes picking a slot by the low bits of an FNV hash. */
static inline uint64_t fl_hash_mix(uint64_t key)
{
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
    return key ^ (key >> 31);
}

#endif
