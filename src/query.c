#include <math.h>

#include "convert.h"
#include "rows.h"

static attnres_status check_vector(const attnres_vector *vector, size_t width)
{
    if (!vector->data) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    if (attnres_dtype_size(vector->dtype) == 0) {
        return ATTNRES_ERROR_DTYPE;
    }
    return vector->length == width ? ATTNRES_OK : ATTNRES_ERROR_SIZE;
}

/* a * b rounded to odd, so that rounding it once more, to float, is the only rounding. */
static double product_to_odd(double a, double b)
{
    const double product = a * b;
    const double error = fma(a, b, -product);
    uint64_t bits = attnres_double_bits(product);
    if (isfinite(product) && error != 0 && (bits & 1) == 0) {
        bits = (error > 0) == (product > 0) ? bits + 1 : bits - 1;
    }
    return attnres_bits_double(bits);
}

attnres_status attnres_make_query(attnres_dtype dtype, size_t width,
                                  const attnres_vector *projection, const attnres_vector *gain,
                                  void *query)
{
    const attnres_shape shape = {dtype, 1, width};
    const attnres_dtype accumulator = attnres_dtype_accumulator(dtype);

    ATTNRES_TRY(attnres_check_shape(&shape));
    if (!projection || !query) {
        return ATTNRES_ERROR_ARGUMENT;
    }
    ATTNRES_TRY(check_vector(projection, width));
    const struct attnres_region out = attnres_region_vector(accumulator, query, width);
    const struct attnres_region from =
        attnres_region_vector(projection->dtype, projection->data, width);
    if (attnres_regions_overlap(&out, &from)) {
        return ATTNRES_ERROR_OVERLAP;
    }
    if (gain) {
        ATTNRES_TRY(check_vector(gain, width));
        const struct attnres_region factor = attnres_region_vector(gain->dtype, gain->data, width);
        if (attnres_regions_overlap(&out, &factor)) {
            return ATTNRES_ERROR_OVERLAP;
        }
    }
    /* In double the product of anything narrower is exact. */
    const int to_odd = accumulator != ATTNRES_F64 && gain && gain->dtype == ATTNRES_F64 &&
                       projection->dtype == ATTNRES_F64;
    for (size_t i = 0; i < width; i++) {
        const double factor = gain ? attnres_element(gain->dtype, gain->data, i) : 1.0;
        const double element = attnres_element(projection->dtype, projection->data, i);
        attnres_set_element(accumulator, query, i,
                            to_odd ? product_to_odd(factor, element) : factor * element);
    }
    return ATTNRES_OK;
}
