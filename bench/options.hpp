// The command line.
#pragma once

#include "measure.hpp"

#include <optional>
#include <string>

namespace bench
{

struct Options {
    bool help = false, list = false, full = false, levels = false, smoke = false;
    bool huge_pages = false, emulated = false;
    int core = -1;
    MeasureOptions measure;
    std::string filter, out, base, other; // --compare BASE [OTHER]
};

// Throws std::invalid_argument with a message for the user.
Options parse_options(int count, char **arguments);

extern const char *const usage;

} // namespace bench
