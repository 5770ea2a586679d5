// The library once more, its vector levels being the scalar bodies compiled with the level's
// flags. It is a module of its own, since its symbols have the library's names.
#pragma once

#include "contender.hpp"

namespace bench
{

void add_autovec(Contenders &contenders);

} // namespace bench
