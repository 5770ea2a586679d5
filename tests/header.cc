// Compiled as strict C++11, warnings being errors: the public header is C++ as well.
#include <attnres.h>

attnres_status header_reads(const float *rows, const float *query, float *out);

attnres_status header_reads(const float *rows, const float *query, float *out)
{
    const attnres_shape shape = {ATTNRES_F32, 1, 4};
    const attnres_rows sources[] = {{rows, 0}, {rows + 4, 0}};
    attnres_read_args args = attnres_read_args();
    args.sources = sources;
    args.source_count = 2;
    args.query = query;
    args.retrieved.data = out;
    return attnres_read(&shape, &args);
}
