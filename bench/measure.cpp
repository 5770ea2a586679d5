#include "measure.hpp"

#include "verify.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>

#include <unistd.h>

namespace bench
{
namespace
{

using benchmark::BenchmarkReporter;

struct Entry {
    const Row *row;
    std::unique_ptr<Task> task;
};

struct Progress {
    std::size_t done = 0, total = 0;
    bool shown = false;

    void step(const std::string &name)
    {
        done++;
        if (shown) {
            std::fprintf(stderr, "\r\033[K%zu/%zu %.60s", std::min(done, total), total,
                         name.c_str());
        }
    }
    void finish() const
    {
        if (shown) {
            std::fprintf(stderr, "\r\033[K");
        }
    }
};

class Collector : public BenchmarkReporter
{
  public:
    bool ReportContext(const Context &) override
    {
        return true;
    }
    void ReportRuns(const std::vector<Run> &report) override
    {
        for (const Run &run : report) {
            families[run.family_index].push_back(run);
        }
    }

    std::map<std::int64_t, std::vector<Run>> families;
};

// The first error is kept; Google Benchmark would only print it.
struct Shared {
    Suite &suite;
    MeasureOptions options;
    Progress progress;
    std::string error;
};

void prepare(Shared &shared, Entry &entry)
{
    const Row &row = *entry.row;
    if (row.contender != nullptr) {
        verify(row, shared.suite.contenders.best());
        row.contender->activate();
    }
    entry.task = std::make_unique<Task>(row.make(row.contender));
    if (row.contender != nullptr) {
        run_once(*entry.task);
        refuse_subnormals(row, *entry.task);
    }
    shared.suite.memory.check_resident();
}

void run_row(benchmark::State &state, Shared &shared, Entry &entry)
{
    const Row &row = *entry.row;
    if (!entry.task) {
        prepare(shared, entry);
    }
    const Task &task = *entry.task;
    if (row.contender != nullptr) {
        row.contender->activate();
    }
    const Begun begun(task);
    const std::size_t l3 = shared.suite.machine.l3;
    if (row.working_set <= (l3 > 0 ? l3 : std::size_t{64} << 20)) {
        task.run(); // other rows had the caches in between
    }
    for ([[maybe_unused]] auto _ : state) {
        task.run();
    }
    if (row.bytes() > 0) {
        const double bytes = row.bytes() * static_cast<double>(state.iterations());
        state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
        state.SetLabel(shared.suite.machine.regime(row.working_set));
    }
}

void guarded(benchmark::State &state, Shared &shared, Entry &entry)
{
    if (shared.error.empty()) {
        try {
            run_row(state, shared, entry);
        } catch (const std::exception &error) {
            shared.error = error.what();
        }
    }
    if (!shared.error.empty()) {
        state.SkipWithError(shared.error.c_str());
    }
    shared.progress.step(entry.row->name());
}

double seconds(const BenchmarkReporter::Run &run)
{
    return run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit);
}

double quantile(const std::vector<double> &sorted, double q)
{
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Measured summarise(const Row *row, std::vector<BenchmarkReporter::Run> runs)
{
    // Medians are what is reported; means and deviations would only make the files larger.
    runs.erase(std::remove_if(runs.begin(), runs.end(),
                              [](const BenchmarkReporter::Run &run) {
                                  return run.aggregate_name == "mean" ||
                                         run.aggregate_name == "stddev";
                              }),
               runs.end());
    Measured measured{row, std::move(runs)};
    std::vector<double> times;
    for (BenchmarkReporter::Run &run : measured.runs) {
        run.run_name.time_type.clear(); // all rows are in real time; names stay as they are
        if (run.run_type == BenchmarkReporter::Run::RT_Iteration) {
            times.push_back(seconds(run));
            measured.real_seconds += run.real_accumulated_time;
            measured.cpu_seconds += run.cpu_accumulated_time;
        }
    }
    if (times.empty()) {
        throw std::runtime_error(row->name() + " was not measured");
    }
    std::sort(times.begin(), times.end());
    measured.fastest = times.front();
    measured.median = quantile(times, 0.5);
    measured.quartile_spread = (quantile(times, 0.75) - quantile(times, 0.25)) / measured.median;
    return measured;
}

void initialise(const MeasureOptions &options)
{
    static std::vector<std::string> words; // Google Benchmark keeps a pointer to the first
    words = {"attnres-bench", "--benchmark_enable_random_interleaving=true",
             "--benchmark_repetitions=" + std::to_string(options.repetitions),
             "--benchmark_min_time=" + std::to_string(options.min_seconds)};
    std::vector<char *> arguments;
    for (std::string &word : words) {
        arguments.push_back(word.data());
    }
    auto count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
}

} // namespace

BenchmarkReporter::Run *Measured::median_run()
{
    for (BenchmarkReporter::Run &run : runs) {
        if (run.aggregate_name == "median") {
            return &run;
        }
    }
    return &runs.front();
}

double median_of(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return quantile(values, 0.5);
}

std::vector<Measured> measure_all(Suite &suite, const MeasureOptions &options)
{
    std::vector<Entry> entries;
    for (const auto &row : suite.rows()) {
        entries.push_back({row.get(), nullptr});
    }
    Shared shared{suite, options, {}, {}};
    shared.progress.total = entries.size() * static_cast<std::size_t>(options.repetitions);
    shared.progress.shown = isatty(STDERR_FILENO) != 0;

    initialise(options);
    for (Entry &entry : entries) {
        benchmark::RegisterBenchmark(
            entry.row->name().c_str(),
            [&shared, &entry](benchmark::State &state) { guarded(state, shared, entry); })
            ->UseRealTime()
            ->Unit(benchmark::kNanosecond);
    }
    Collector collector;
    benchmark::RunSpecifiedBenchmarks(&collector, nullptr, ".");
    shared.progress.finish();
    if (!shared.error.empty()) {
        throw std::runtime_error(shared.error);
    }
    std::vector<Measured> measured;
    std::size_t index = 0;
    for (auto &[family, runs] : collector.families) {
        measured.push_back(summarise(entries.at(index++).row, std::move(runs)));
    }
    return measured;
}

} // namespace bench
