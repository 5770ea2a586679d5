/* Single elements of any dtype, for the common code that touches a few of them. */
#ifndef ATTNRES_CONVERT_H
#define ATTNRES_CONVERT_H

#include <attnres.h>

#include "half.h"

/* Element i, exactly. */
static inline double attnres_element(attnres_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case ATTNRES_F64:
        return ((const double *)data)[i];
    case ATTNRES_F32:
        return (double)((const float *)data)[i];
    case ATTNRES_F16:
        return (double)attnres_f16_to_float(((const uint16_t *)data)[i]);
    case ATTNRES_BF16:
        return (double)attnres_bf16_to_float(((const uint16_t *)data)[i]);
    }
    return 0;
}

/* Element i = value, rounded once. */
static inline void attnres_set_element(attnres_dtype dtype, void *data, size_t i, double value)
{
    switch (dtype) {
    case ATTNRES_F64:
        ((double *)data)[i] = value;
        break;
    case ATTNRES_F32:
        ((float *)data)[i] = (float)value;
        break;
    case ATTNRES_F16:
        ((uint16_t *)data)[i] = attnres_float_to_f16(attnres_double_to_float_odd(value));
        break;
    case ATTNRES_BF16:
        ((uint16_t *)data)[i] = attnres_float_to_bf16(attnres_double_to_float_odd(value));
        break;
    }
}

#endif
