/* SPDX-License-Identifier: Apache-2.0 */
/* A library that reads power and clocks of two GPUs, at 0000:1b:00.0 and 0000:1c:00.0. A test finds
 * its functions by dlsym. */
#ifndef FAKENVML_H
#define FAKENVML_H

/* Calls, by what they are about. */
typedef enum fake_nvml_call {
    FAKE_INIT,
    FAKE_SHUTDOWN,
    FAKE_HANDLE,
    FAKE_POWER,
    FAKE_CLOCK,
    FAKE_REASONS,
    FAKE_NVML_CALLS
} fake_nvml_call;

/* Successful calls so far. Power runs through 100, 200 and 300 W, the clock through 1000, 1500 and
 * 2000 MHz; every third sample has the limit of the power as reason. */
typedef int (*fake_nvml_count_fn)(fake_nvml_call call);

/* The variable FAKENVML_FAIL names a call that fails, and its code: "power 3". Of the handles that
 * of the second GPU fails. */
#define FAKE_NVML_FAIL "FAKENVML_FAIL"

#endif
