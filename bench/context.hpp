// What a reader of the JSON has to know about the run.
#pragma once

#include "measure.hpp"
#include "results.hpp"

#include <string>

namespace bench
{

struct Conditions {
    MeasureOptions measure;
    bool huge_pages = false, emulated = false, smoke = false;
    double mhz_before = 0, mhz_after = 0;
    double loop_seconds = 0; // what Google Benchmark's own loop costs per iteration
};

// Adds all of it to Google Benchmark's context.
void describe_run(const Suite &suite, const Results &results, const Conditions &conditions);

// Throws if this program or the library was not built for speed.
void require_release_build();

// Seconds per iteration of an empty benchmark.
double empty_loop_seconds();

} // namespace bench
