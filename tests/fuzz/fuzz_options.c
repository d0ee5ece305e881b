/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `filch-bench run`, a line an argument. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

#define WORDS 32

static void require_sound(const bench_options *options)
{
    fuzz_require(options->help || options->workload != NULL);
    fuzz_require(options->repeat >= 1 && options->repeat <= BENCH_REPEAT_MAX);
    fuzz_require((options->scores != NULL) == (options->score_count > 0));
    for (size_t k = 0; k < options->score_count; k++)
        fuzz_require(options->scores[k] > 0 && isfinite(options->scores[k]));
    fuzz_require(options->slow.factor <= BENCH_SLOW_MOST && options->slow.after_s >= 0);
    if (options->withdraw.is_asked)
        fuzz_require(options->withdraw.from_s >= 0 &&
                     options->withdraw.to_s > options->withdraw.from_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char command[] = "run";
    char *words[WORDS + 1] = {command};
    char *text = fuzz_text(data, size), *place;
    filch_error error = FILCH_ERROR_INIT;
    bench_options options = {0};
    filch_status status;
    int count = 1;

    for (char *word = strtok_r(text, "\n", &place); word != NULL && count < WORDS;
         word = strtok_r(NULL, "\n", &place))
        words[count++] = word;
    status = bench_options_parse(count, words, &options, &error);
    if (status == FILCH_OK) {
        require_sound(&options);
        bench_options_free(&options);
    } else {
        fuzz_require(options.scores == NULL);
        fuzz_require_error(&error, status);
    }
    free(text);
    return 0;
}
