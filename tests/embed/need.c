/* SPDX-License-Identifier: Apache-2.0 */
/* What the tutorial's `need` says of calls of which filch keeps no record, an older one apart. */
#define main heat
#include "../../docs/examples/heat.c"
#undef main

int main(int argc, char **argv)
{
    (void)argv;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *rt;
    if (filch_runtime_create(NULL, &error, &rt) != FILCH_OK)
        stop(&error);
    if (argc > 1)
        (void)filch_data_create(rt, NULL, NULL); /* a failure on record */
    need(filch_graph_seal(NULL), rt);
    return 0;
}
