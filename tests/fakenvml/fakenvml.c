/* SPDX-License-Identifier: Apache-2.0 */
/* Variants by definition: FAKE_OLDER has the reasons under their older name, FAKE_LACKING has no
 * power. */
#include "fakenvml.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef FAKE_OLDER
#define REASONS nvmlDeviceGetCurrentClocksThrottleReasons
#else
#define REASONS nvmlDeviceGetCurrentClocksEventReasons
#endif

static atomic_int counts[FAKE_NVML_CALLS];
static int gpus[2];

int fake_nvml_count(fake_nvml_call call);
int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **handle);
int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts);
int nvmlDeviceGetClockInfo(void *handle, int type, unsigned *megahertz);
int REASONS(void *handle, unsigned long long *reasons);

int fake_nvml_count(fake_nvml_call call)
{
    return atomic_load(&counts[call]);
}

/* The code with which a call fails, or 0; counts what succeeds. */
static int code_of(fake_nvml_call call, const char *name)
{
    const char *wanted = getenv(FAKE_NVML_FAIL);
    size_t length = strlen(name);
    int code = 0;
    if (wanted != NULL && strncmp(wanted, name, length) == 0 && wanted[length] == ' ') {
        code = atoi(wanted + length);
    }
    atomic_fetch_add(&counts[call], code == 0);
    return code;
}

int nvmlInit_v2(void)
{
    return code_of(FAKE_INIT, "init");
}

int nvmlShutdown(void)
{
    return code_of(FAKE_SHUTDOWN, "shutdown");
}

const char *nvmlErrorString(int code)
{
    return code == 3 ? "Not Supported" : code == 6 ? "Not Found" : code == 9 ? "Driver" : "Unknown";
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **handle)
{
    int gpu = strcmp(address, "0000:1b:00.0") == 0   ? 0
              : strcmp(address, "0000:1c:00.0") == 0 ? 1
                                                     : -1;
    int code = gpu < 0 ? 6 : gpu == 1 ? code_of(FAKE_HANDLE, "handle") : 0;
    *handle = code == 0 ? &gpus[gpu] : NULL;
    return code;
}

/* Number of the handle's sample: a handle not of ours gives a wrong one. */
static unsigned turn_of(void *handle, fake_nvml_call call)
{
    return handle == &gpus[0] || handle == &gpus[1] ? (unsigned)fake_nvml_count(call) % 3 : 99;
}

#ifndef FAKE_LACKING
int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts)
{
    *milliwatts = 100000 + 100000 * turn_of(handle, FAKE_POWER);
    return code_of(FAKE_POWER, "power");
}
#endif

int nvmlDeviceGetClockInfo(void *handle, int type, unsigned *megahertz)
{
    *megahertz = type == 1 ? 1000 + 500 * turn_of(handle, FAKE_CLOCK) : 1;
    return code_of(FAKE_CLOCK, "clock");
}

int REASONS(void *handle, unsigned long long *reasons)
{
    *reasons = turn_of(handle, FAKE_REASONS) == 0 ? 0x4 : 0x1;
    return code_of(FAKE_REASONS, "reasons");
}
