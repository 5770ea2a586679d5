// No level may be slower than the one below it, however small the call.
#pragma once

#include "contender.hpp"
#include "memory.hpp"

namespace bench
{

// Times one-token reads of width 1..256 with 1..12 sources, every dtype, each level against the
// one below. Prints the shapes where the higher one takes more than 10 % longer, also when they
// are measured again. Returns how many there are.
int check_levels(const Contenders &contenders, Memory &memory);

} // namespace bench
