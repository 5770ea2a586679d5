// Runs the rows through Google Benchmark, interleaved, and keeps what it reports.
#pragma once

#include "row.hpp"

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace bench
{

struct Measured {
    const Row *row;
    std::vector<benchmark::BenchmarkReporter::Run> runs; // repetitions, then aggregates
    double median = 0, fastest = 0, quartile_spread = 0; // seconds; (q3 - q1) / median
    double real_seconds = 0, cpu_seconds = 0;            // of all repetitions together

    // The aggregate that carries the derived counters.
    benchmark::BenchmarkReporter::Run *median_run();
};

struct MeasureOptions {
    int repetitions = 9;
    double min_seconds = 0.05; // of each repetition
};

// In the order of the suite. Throws what a row's call or its verification threw.
std::vector<Measured> measure_all(Suite &suite, const MeasureOptions &options);

double median_of(std::vector<double> values);

} // namespace bench
