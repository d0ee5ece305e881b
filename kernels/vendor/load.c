/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/vendor/load.h"

#include "kernels/vendor/lane.h"

#include <stdlib.h>

static filch_status load(fl_cuda_library *driver, filch_error *error, fl_vendor **out)
{
    filch_status status = fl_cuda_load(driver, error);
    if (status != FILCH_OK)
        return status;
    if (driver->count == 0)
        status = fl_error_fill(error, (fl_fault){.status = FILCH_NO_DEVICE, .label = "cuda"},
                               "the driver shows no GPU");
    if (status == FILCH_OK)
        status = fl_vendor_open(driver, error, out);
    if (status != FILCH_OK)
        fl_cuda_unload(driver);
    return status;
}

filch_status fl_vendor_load(filch_error *error, fl_vendor **out)
{
    fl_cuda_library *driver = calloc(1, sizeof *driver);
    filch_status status = driver ? load(driver, error, out) : FILCH_OUT_OF_MEMORY;
    if (status == FILCH_OK)
        (*out)->own = driver;
    else
        free(driver);
    return status;
}

void fl_vendor_unload(fl_vendor *vendor)
{
    fl_cuda_library *driver = vendor ? vendor->own : NULL;
    fl_vendor_close(vendor);
    if (driver)
        fl_cuda_unload(driver);
    free(driver);
}
