// Results are looked at before anything is timed.
#pragma once

#include "row.hpp"

namespace bench
{

// Throws unless the row's contender gives the library's bits, or numbers close to them if it makes
// no such promise. Leaves the row's own results in memory.
void verify(const Row &row, const Contender &reference);

// Throws if a result holds a subnormal: those would be timed instead of the kernel.
void refuse_subnormals(const Row &row, const Task &task);

} // namespace bench
