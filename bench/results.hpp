// From times to rates, fractions and ratios; and whether the numbers can be believed.
#pragma once

#include "measure.hpp"

#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace bench
{

// What a row's median means. 0: does not apply.
struct Derived {
    double bytes_per_second = 0;
    double roof_bytes_per_second = 0, roof_fraction = 0;
    double sequential_fraction = 0;         // of the roof that reads one row set after the other
    double arithmetic_bytes_per_second = 0; // where the arithmetic alone would end
    double limit_fraction = 0;              // of the lower of the two
    std::map<std::string, double> ratios;   // "scalar", "peer-c", ...: their time / this time
};

struct Results {
    std::vector<Measured> rows; // in the order of the suite; counters are set
    std::vector<Derived> derived;
    double noise = 0; // largest difference of two A/A medians, relative
    bool noise_known = false;
    double cpu_share = 1; // of the time that this thread had the core while it was measuring
    bool noisy = false;   // noise above 5 %, or the core was shared with others
    std::vector<std::string> incredible; // rows that read faster than a plain read
};

Results evaluate(std::vector<Measured> rows);

// Google Benchmark's JSON, with the context that was added. To a file: throws if that cannot be
// written, and then nothing is left behind.
void write_json(std::ostream &stream, const Results &results);
void write_json(const std::string &path, const Results &results);

} // namespace bench
