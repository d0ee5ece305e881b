/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix Market files. The first byte of an input says which matrices are wanted. */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>

#include "problems/matrix_market.h"

#define LIMIT ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    filch_error error = FILCH_ERROR_INIT;
    bench_matrix matrix = {.values = NULL};
    bench_matrix_need need;
    filch_status status;
    char *text;

    if (size == 0)
        return 0;
    need = (bench_matrix_need)(data[0] % 3);
    text = fuzz_text(data + 1, size - 1);
    status = bench_matrix_parse(text, size - 1, "FILE", need, LIMIT, &error, &matrix);
    if (status == FILCH_OK) {
        fuzz_require(matrix.rows > 0 && matrix.cols > 0);
        fuzz_require(need == BENCH_MATRIX_ANY || matrix.rows == matrix.cols);
        for (size_t k = 0; k < matrix.rows * matrix.cols; k++)
            fuzz_require(isfinite(matrix.values[k]));
        for (size_t i = 0; need == BENCH_MATRIX_SYMMETRIC && i < matrix.rows; i++)
            for (size_t j = 0; j < i; j++) {
                double low = matrix.values[i + j * matrix.rows];
                double high = matrix.values[j + i * matrix.rows];
                fuzz_require(!(low < high) && !(low > high));
            }
        bench_matrix_free(&matrix);
    } else {
        fuzz_require(matrix.values == NULL);
        fuzz_require_error(&error, status);
    }
    free(text);
    return 0;
}
