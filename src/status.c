#include <attnres.h>

#include "strict.h"

#define STRINGIFY(x) #x
#define STRING(x) STRINGIFY(x)

const char *attnres_version(void)
{
    return STRING(ATTNRES_VERSION_MAJOR) "." STRING(ATTNRES_VERSION_MINOR) "." STRING(
        ATTNRES_VERSION_PATCH);
}

const char *attnres_status_string(attnres_status status)
{
    switch (status) {
    case ATTNRES_OK:
        return "success";
    case ATTNRES_ERROR_ARGUMENT:
        return "a required argument is missing or arguments contradict each other";
    case ATTNRES_ERROR_DTYPE:
        return "unknown or unsuitable dtype";
    case ATTNRES_ERROR_SIZE:
        return "a width, block size or count is out of range or does not match";
    case ATTNRES_ERROR_STRIDE:
        return "a stride is negative or smaller than what it steps over";
    case ATTNRES_ERROR_OVERFLOW:
        return "sizes multiply to more than memory can hold";
    case ATTNRES_ERROR_VALUE:
        return "eps must be finite and not negative, scale finite, biases not NaN or +Inf";
    case ATTNRES_ERROR_OVERLAP:
        return "an output overlaps an input or another output";
    case ATTNRES_ERROR_STATE:
        return "the stream does not allow this call now";
    case ATTNRES_ERROR_LEVEL:
        return "level not built or not allowed on this machine";
    }
    return "unknown status";
}

size_t attnres_dtype_size(attnres_dtype dtype)
{
    switch (dtype) {
    case ATTNRES_F32:
        return 4;
    case ATTNRES_F64:
        return 8;
    case ATTNRES_F16:
    case ATTNRES_BF16:
        return 2;
    }
    return 0;
}

attnres_dtype attnres_dtype_accumulator(attnres_dtype dtype)
{
    return dtype == ATTNRES_F64 ? ATTNRES_F64 : ATTNRES_F32;
}

size_t attnres_source_count(size_t layers, size_t block_size)
{
    if (block_size == 0) {
        return 0;
    }
    return 1 + layers / block_size + (layers % block_size != 0);
}
