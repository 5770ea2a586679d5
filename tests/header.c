/* Compiled as strict C99, warnings being errors: the public header needs nothing before it, may
 * come twice, and its structs can be written with designated initialisers. */
#include <attnres.h>

attnres_status header_reads(const float *rows, const float *query, float *out);

attnres_status header_reads(const float *rows, const float *query, float *out)
{
    const attnres_shape shape = {.dtype = ATTNRES_F32, .tokens = 1, .width = 4};
    const attnres_rows sources[] = {{.data = rows}, {.data = rows + 4}};
    const attnres_read_args args = {
        .sources = sources, .source_count = 2, .query = query, .retrieved = {.data = out}};
    return attnres_read(&shape, &args);
}
