/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of doubles to and from atomic 64-bit words, for values that need only a plain load or
 * store. */
#ifndef FL_BASE_BITS_H
#define FL_BASE_BITS_H

#include <stdint.h>
#include <string.h>

static inline double fl_bits_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t fl_double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#endif
