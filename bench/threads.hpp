// A task split over the host's threads, as a runtime would do it: the library itself has none.
#pragma once

#include "machine.hpp"
#include "row.hpp"

namespace bench
{

// Runs all parts at once, each on a core of its own. The threads exist, and wait spinning, only
// between begin and end; run is what is timed. Part 0 runs on the calling thread.
Task in_threads(const Machine &machine, std::vector<Task> parts);

// Tokens of part i of n: begin and end.
std::pair<std::size_t, std::size_t> share(std::size_t tokens, int part, int parts);

} // namespace bench
