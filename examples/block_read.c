#include <attnres.h>
#include <stdio.h>

int main(void) /* outputs 1, 2, 3, 4 of four layers after the embedding 5, in blocks of three */
{
    const float embedding = 5, layer[4] = {1, 2, 3, 4}, query = 0.5f;
    const attnres_rows outputs[4] = {
        {&layer[0], 0}, {&layer[1], 0}, {&layer[2], 0}, {&layer[3], 0}};
    const attnres_shape shape = {.dtype = ATTNRES_F32, .tokens = 1, .width = 1};
    float retrieved, weights[3], sums[3];
    const attnres_rows_out sources[3] = {{&sums[0], 0}, {&sums[1], 0}, {&sums[2], 0}};
    const attnres_block_read_args args = {.embedding = {&embedding, 0},
                                          .outputs = outputs,
                                          .layers = 4,
                                          .block_size = 3,
                                          .query = &query,
                                          .eps = 1e-6,
                                          .retrieved = {&retrieved, 0},
                                          .weights = {.data = weights},
                                          .sources = sources,
                                          .source_count = attnres_source_count(4, 3)};
    const attnres_status status = attnres_block_read(&shape, &args);
    printf("%s: sources %g %g %g, retrieved %g\n", attnres_status_string(status), (double)sums[0],
           (double)sums[1], (double)sums[2], (double)retrieved);
    return status != ATTNRES_OK || sums[1] != 6 || sums[2] != 4;
}
