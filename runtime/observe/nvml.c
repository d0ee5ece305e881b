/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Reads an entry point into *place. Newer drivers call the reasons by another name. */
static bool find(const fl_nvml *nvml, const char *name, const char *older, void *place)
{
    void *found = dlsym(nvml->library, name);
    if (found == NULL && older != NULL) {
        found = dlsym(nvml->library, older);
    }
    memcpy(place, &found, sizeof found);
    return found != NULL;
}

/* Reads every entry point. Returns the name of the first that is missing, or null. */
static const char *find_all(fl_nvml *nvml)
{
    const struct {
        const char *name, *older;
        void *place;
    } entries[] = {
        {"nvmlInit_v2", NULL, &nvml->init},
        {"nvmlShutdown", NULL, &nvml->shutdown},
        {"nvmlErrorString", NULL, &nvml->error_string},
        {"nvmlDeviceGetHandleByPciBusId_v2", NULL, &nvml->handle_by_address},
        {"nvmlDeviceGetPowerUsage", NULL, &nvml->power},
        {"nvmlDeviceGetClockInfo", NULL, &nvml->clock},
        {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
         &nvml->reasons},
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; ++i) {
        if (!find(nvml, entries[i].name, entries[i].older, entries[i].place)) {
            return entries[i].name;
        }
    }
    return NULL;
}

bool fl_nvml_is_ok(const fl_nvml *nvml, int code, const char *call, char why[FL_NVML_WHY])
{
    if (code == 0) {
        return true;
    }
    const char *text = nvml->error_string(code);
    snprintf(why, FL_NVML_WHY, "%s: %s (%d)", call, text != NULL ? text : "no text", code);
    return false;
}

bool fl_nvml_open(fl_nvml *nvml, const char *path, char why[FL_NVML_WHY])
{
    const char *name = path[0] != '\0' ? path : FL_NVML_LIBRARY;
    *nvml = (fl_nvml){.library = dlopen(name, RTLD_NOW | RTLD_LOCAL)};
    if (nvml->library == NULL) {
        const char *reason = dlerror(); /* NOLINT(concurrency-mt-unsafe): a thread's own in glibc */
        snprintf(why, FL_NVML_WHY, "%s", reason != NULL ? reason : "no reason is given");
        return false;
    }
    const char *missing = find_all(nvml);
    if (missing != NULL) {
        snprintf(why, FL_NVML_WHY, "%s has no %s", name, missing);
    } else if (fl_nvml_is_ok(nvml, nvml->init(), "nvmlInit_v2", why)) {
        return true;
    }
    dlclose(nvml->library);
    nvml->library = NULL;
    return false;
}

void fl_nvml_close(fl_nvml *nvml)
{
    if (nvml->library != NULL) {
        (void)nvml->shutdown();
        dlclose(nvml->library);
        nvml->library = NULL;
    }
}

bool fl_nvml_find(const fl_nvml *nvml, const char *address, void **handle, char why[FL_NVML_WHY])
{
    return fl_nvml_is_ok(nvml, nvml->handle_by_address(address, handle),
                         "nvmlDeviceGetHandleByPciBusId_v2", why);
}
