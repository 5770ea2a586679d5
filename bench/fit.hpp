// Is cost proportional to work? A straight line through the points of each sweep.
#pragma once

#include "results.hpp"

#include <string>
#include <vector>

namespace bench
{

// seconds = intercept + bytes * slope, fitted so that relative deviations are least.
struct Fit {
    std::string sweep;  // "width/read/f32/avx2"
    std::string regime; // of its points, or "all"
    double intercept = 0, slope = 0, r2 = 0;
    double worst = 0; // largest relative deviation, with its sign
    std::string worst_at;
    std::string bends_at; // first point, by work, that deviates by more than 15 %; "" if none
    std::size_t points = 0;
};

std::vector<Fit> fit_sweeps(const Suite &suite, const Results &results);

void print_fits(const std::vector<Fit> &fits);
void describe_fits(const std::vector<Fit> &fits); // adds them to the context

} // namespace bench
