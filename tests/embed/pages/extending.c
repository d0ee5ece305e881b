/* SPDX-License-Identifier: Apache-2.0 */
/* The block of C of docs/extending.md: a policy, at work in a runtime. */
#include <filch/filch.h>

#include "page.h"

#include "a-policy-1.functions.inc"

static int add_one(const filch_call *call)
{
    *(double *)call->views[0].ptr += 1;
    return 0;
}

int main(void)
{
    double values[200] = {0};
    filch_runtime *rt = NULL;
    filch_policy_counts counts = FILCH_POLICY_COUNTS_INIT;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.devices = "host:2@any";
#include "a-policy-1.1.inc"
    EXPECT(filch_runtime_create(&config, NULL, &rt) == FILCH_OK);
    filch_data *x = vector(rt, values, 200, 1);
    filch_codelet *codelet = host_codelet(rt, "add_one", add_one, 0);
    filch_graph *graph = new_graph(rt);
    for (uint32_t k = 0; k < 200; k++)
        add(graph, codelet, (filch_access[]){FILCH_RW(x, k, 0)}, 1);
    EXPECT(run(graph) == FILCH_OK);
    for (int k = 0; k < 200; k++)
        EXPECT(values[k] == 1);
    EXPECT(filch_runtime_policy(rt, &counts) == FILCH_OK && counts.places == 200);
    EXPECT(counts.places_refused == 0 && counts.steals_refused == 0);
    stop(rt);
    return page_end("docs/extending.md");
}
