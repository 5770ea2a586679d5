#include "verify.hpp"

extern "C" {
#include "half.h"
}

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace bench
{
namespace
{

template <typename Number> Number element(const void *data, std::size_t i)
{
    Number value;
    std::memcpy(&value, static_cast<const std::byte *>(data) + i * sizeof value, sizeof value);
    return value;
}

double value_of(attnres_dtype dtype, const void *data, std::size_t i)
{
    switch (dtype) {
    case ATTNRES_F32:
        return static_cast<double>(element<float>(data, i));
    case ATTNRES_F64:
        return element<double>(data, i);
    case ATTNRES_F16:
        return static_cast<double>(attnres_f16_to_float(element<std::uint16_t>(data, i)));
    case ATTNRES_BF16:
        return static_cast<double>(attnres_bf16_to_float(element<std::uint16_t>(data, i)));
    }
    return 0;
}

// What two honest ways to round may differ by, relative to the largest element.
double tolerance(attnres_dtype dtype)
{
    switch (dtype) {
    case ATTNRES_F64:
        return 1e-12;
    case ATTNRES_F16:
        return 1.0 / 512;
    case ATTNRES_BF16:
        return 1.0 / 64;
    case ATTNRES_F32:
        break;
    }
    return 1e-5;
}

// Of the accumulator type: arithmetic is done there, and an f16 subnormal is an ordinary float.
double smallest_normal(attnres_dtype dtype)
{
    return dtype == ATTNRES_F64 ? 0x1p-1022 : 0x1p-126;
}

void compare(const Row &row, const Result &got, const std::vector<std::byte> &want)
{
    const std::size_t bytes = got.count * attnres_dtype_size(got.dtype);
    if (row.contender->exact) {
        if (std::memcmp(got.data, want.data(), bytes) != 0) {
            throw std::runtime_error(row.name() + " does not give the library's bits");
        }
        return;
    }
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < got.count; i++) {
        const double expected = value_of(got.dtype, want.data(), i);
        const double error = std::fabs(value_of(got.dtype, got.data, i) - expected);
        largest = std::max(largest, std::fabs(expected));
        difference = std::max(difference, std::isnan(error) ? INFINITY : error);
    }
    if (!(difference <= tolerance(got.dtype) * largest)) {
        throw std::runtime_error(row.name() + " gives other results than the library");
    }
}

} // namespace

void verify(const Row &row, const Contender &reference)
{
    reference.activate();
    const Task expected = row.make(&reference);
    std::vector<std::vector<std::byte>> wanted;
    run_once(expected);
    for (const Result &result : expected.results) {
        const auto *data = static_cast<const std::byte *>(result.data);
        wanted.emplace_back(data, data + result.count * attnres_dtype_size(result.dtype));
    }
    row.contender->activate();
    const Task task = row.make(row.contender);
    for (const Result &result : task.results) {
        std::memset(result.data, 0xff, result.count * attnres_dtype_size(result.dtype));
    }
    run_once(task);
    for (std::size_t i = 0; i < wanted.size(); i++) {
        compare(row, task.results[i], wanted[i]);
    }
}

void refuse_subnormals(const Row &row, const Task &task)
{
    for (const Result &result : task.results) {
        const double normal = smallest_normal(result.dtype);
        for (std::size_t i = 0; i < result.count; i++) {
            const double magnitude = std::fabs(value_of(result.dtype, result.data, i));
            if (magnitude > 0 && magnitude < normal) {
                throw std::runtime_error(row.name() + " has subnormals in its result");
            }
        }
    }
}

} // namespace bench
