#include "context.hpp"

#include "build.h"
#include "commit.h"
#include "roofs.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <stdexcept>

namespace bench
{
namespace
{

std::string number(double value, int digits)
{
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

std::string bytes_text(std::size_t bytes)
{
    return bytes == 0 ? "unknown" : std::to_string(bytes);
}

void describe_machine(const Machine &machine)
{
    using benchmark::AddCustomContext;
    AddCustomContext("cpu", machine.cpu);
    AddCustomContext("cores", std::to_string(machine.cores));
    AddCustomContext("cache_l1_bytes", bytes_text(machine.l1));
    AddCustomContext("cache_l2_bytes", bytes_text(machine.l2));
    AddCustomContext("cache_l3_bytes", bytes_text(machine.l3));
    AddCustomContext("memory_bytes", bytes_text(machine.memory_bytes));
    AddCustomContext("governor", machine.governor);
    AddCustomContext("frequency", machine.frequency);
    AddCustomContext("turbo", machine.turbo);
    AddCustomContext("virtualised", machine.virtualised);
    AddCustomContext("kernel", machine.kernel);
    AddCustomContext("pinned_core", std::to_string(machine.core));
}

void describe_build()
{
    using benchmark::AddCustomContext;
    AddCustomContext("library_version", attnres_version());
    AddCustomContext("commit", BENCH_COMMIT);
    AddCustomContext("compiler", BENCH_C_COMPILER);
    AddCustomContext("benchmark_compiler", BENCH_CPP_COMPILER);
    AddCustomContext("flags", BENCH_FLAGS);
    AddCustomContext("level_flags", BENCH_LEVEL_FLAGS);
}

void describe_levels(const Contenders &contenders)
{
    using benchmark::AddCustomContext;
    std::string levels, peers, skipped, absent;
    for (const Contender &contender : contenders.present) {
        std::string &list = contender.ours ? levels : peers;
        list += (list.empty() ? "" : ", ") + contender.name;
    }
    std::vector<attnres_level_report> reports(attnres_level_reports(nullptr, 0));
    attnres_level_reports(reports.data(), reports.size());
    for (const attnres_level_report &report : reports) {
        if (!report.usable) {
            skipped += (skipped.empty() ? "" : "; ") +
                       std::string(attnres_level_name(report.level)) + ": " + report.why;
        }
    }
    for (const Absent &peer : contenders.absent) {
        attnres_level level;
        if (attnres_level_from_name(peer.name.c_str(), &level) != ATTNRES_OK) {
            absent += (absent.empty() ? "" : "; ") + peer.name + ": " + peer.why;
        }
    }
    AddCustomContext("level", contenders.best().name);
    AddCustomContext("level_reason", attnres_level_reason());
    AddCustomContext("levels", levels);
    AddCustomContext("levels_skipped", skipped.empty() ? "none" : skipped);
    AddCustomContext("peers", peers);
    AddCustomContext("peers_absent", absent.empty() ? "none" : absent);
    AddCustomContext("roof_level", roof_level());
}

std::string page_mode(const Machine &machine, bool huge)
{
    const long kib = huge_page_kib();
    return std::string(huge ? "huge pages asked for" : "the system's choice") +
           ", transparent huge pages: " + machine.thp +
           ", in huge pages at the end: " + (kib < 0 ? "unknown" : std::to_string(kib) + " KiB");
}

} // namespace

void describe_run(const Suite &suite, const Results &results, const Conditions &conditions)
{
    using benchmark::AddCustomContext;
    describe_machine(suite.machine);
    describe_build();
    suite.contenders.best().activate(); // for the reason
    describe_levels(suite.contenders);
    AddCustomContext("page_mode", page_mode(suite.machine, conditions.huge_pages));
    AddCustomContext("layout", "block-major, row sets 320 bytes apart");
    AddCustomContext("mhz_measured_before", number(conditions.mhz_before, 0));
    AddCustomContext("mhz_measured_after", number(conditions.mhz_after, 0));
    AddCustomContext("loop_overhead_ns", number(conditions.loop_seconds * 1e9, 3));
    AddCustomContext("repetitions", std::to_string(conditions.measure.repetitions));
    AddCustomContext("min_time", number(conditions.measure.min_seconds, 3));
    AddCustomContext("interleaved", "yes");
    AddCustomContext("noise", results.noise_known ? number(results.noise, 4) : "unknown");
    AddCustomContext("cpu_share", number(results.cpu_share, 3));
    AddCustomContext("noisy", results.noisy ? "yes" : results.noise_known ? "no" : "unknown");
    AddCustomContext("emulated", conditions.emulated ? "yes, timings meaningless" : "no");
    AddCustomContext("smoke", conditions.smoke ? "yes, timings meaningless" : "no");
    std::string skipped;
    for (const std::string &row : suite.skipped()) {
        skipped += (skipped.empty() ? "" : "; ") + row;
    }
    AddCustomContext("rows_skipped", skipped.empty() ? "none" : skipped);
}

void require_release_build()
{
#if !defined(NDEBUG) || !defined(__OPTIMIZE__)
    throw std::runtime_error("not a release build: set it up with --buildtype=release");
#endif
}

// Debian builds Google Benchmark optimised, but without NDEBUG, so its library_build_type always
// says "debug". What matters is what its loop costs; that is measured instead.
double empty_loop_seconds()
{
    class Quiet : public benchmark::BenchmarkReporter
    {
      public:
        bool ReportContext(const Context &) override
        {
            return true;
        }
        void ReportRuns(const std::vector<Run> &report) override
        {
            const Run &run = report.front();
            seconds = run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit);
        }
        double seconds = 0;
    };
    Quiet reporter;
    benchmark::RegisterBenchmark("empty",
                                 [](benchmark::State &state) {
                                     for ([[maybe_unused]] auto _ : state) {
                                         benchmark::ClobberMemory();
                                     }
                                 })
        ->UseRealTime()
        ->Iterations(10000000);
    benchmark::RunSpecifiedBenchmarks(&reporter, nullptr, ".");
    benchmark::ClearRegisteredBenchmarks();
    return reporter.seconds;
}

} // namespace bench
