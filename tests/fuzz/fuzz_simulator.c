/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON that describes simulated devices. */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "backend/sim/describe.h"
#include "base/memory.h"

static void require_sound(const fl_sim_description *made)
{
    fuzz_require(made->count >= 1);
    for (size_t k = 0; k < made->count; k++) {
        const fl_sim_model *model = &made->models[k];

        fuzz_require(model->speed > 0 && isfinite(model->speed));
        fuzz_require(model->count >= 1 && model->lanes >= 1 && model->window >= 1);
        fuzz_require(model->memory >= 1 && model->home < made->count);
        fuzz_require(memchr(model->name, '\0', sizeof model->name) != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fl_memory memory = fl_memory_system();
    filch_error error = FILCH_ERROR_INIT;
    fl_discovery how = {.memory = &memory, .error = &error};
    fl_sim_description made = {.models = NULL};
    char *text = fuzz_text(data, size);
    filch_status status = fl_sim_describe_text(&made, "FILE", text, size, &how);

    if (status == FILCH_OK) {
        require_sound(&made);
        fl_sim_description_free(&made, &memory);
    } else {
        fuzz_require(made.models == NULL);
        fuzz_require_error(&error, status);
    }
    fl_free(&memory, text, size + 1);
    return 0;
}
