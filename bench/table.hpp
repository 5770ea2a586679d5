// What is printed at the end.
#pragma once

#include "results.hpp"

namespace bench
{

void print_table(const Suite &suite, const Results &results);

} // namespace bench
