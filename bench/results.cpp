#include "results.hpp"

#include "roofs.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace bench
{
namespace
{

constexpr double noise_limit = 0.05;
constexpr double least_cpu_share = 0.95;
constexpr double incredible_factor = 1.1;

class Index
{
  public:
    explicit Index(const std::vector<Measured> &rows)
    {
        for (const Measured &row : rows) {
            by_name_[row.row->name()] = &row;
        }
    }
    const Measured *find(const std::string &name) const
    {
        const auto found = by_name_.find(name);
        return found == by_name_.end() ? nullptr : found->second;
    }
    // The highest of their rates, by median or by the fastest repetition; 0 without any.
    double best_rate(const std::vector<std::string> &names,
                     double Measured::*time = &Measured::median) const
    {
        double best = 0;
        for (const std::string &name : names) {
            const Measured *row = find(name);
            best = row == nullptr ? best : std::max(best, row->row->bytes() / row->*time);
        }
        return best;
    }

  private:
    std::map<std::string, const Measured *> by_name_;
};

void add_limits(const Measured &measured, const Index &index, Derived &derived)
{
    const Row &row = *measured.row;
    derived.roof_bytes_per_second = index.best_rate(row.roofs);
    if (derived.roof_bytes_per_second <= 0) {
        return;
    }
    derived.roof_fraction = derived.bytes_per_second / derived.roof_bytes_per_second;
    derived.sequential_fraction = derived.bytes_per_second / index.best_rate({row.roofs.front()});
    derived.limit_fraction = derived.roof_fraction;
    const Measured *fma = index.find(fma_roof_name(row.contender->level, row.type));
    if (fma != nullptr && row.operations > 0) {
        const double time = row.operations * fma->median / fma->row->operations;
        derived.arithmetic_bytes_per_second = row.bytes() / (time / std::max(1, row.threads));
        derived.limit_fraction =
            derived.bytes_per_second /
            std::min(derived.roof_bytes_per_second, derived.arithmetic_bytes_per_second);
    }
}

void add_ratios(const Measured &measured, const std::vector<Measured> &all, Derived &derived)
{
    const Row &row = *measured.row;
    for (const Measured &other : all) {
        const Row &its = *other.row;
        if (its.contender == nullptr || its.contender == row.contender ||
            its.kernel != row.kernel || its.dtype != row.dtype || its.shape != row.shape) {
            continue;
        }
        if (!its.contender->ours || its.contender_name == "scalar") {
            derived.ratios[its.contender_name] = other.median / measured.median;
        }
    }
}

Derived derive(const Measured &measured, const std::vector<Measured> &all, const Index &index)
{
    Derived derived;
    derived.bytes_per_second = measured.row->bytes() / measured.median;
    if (measured.row->contender != nullptr) {
        add_limits(measured, index, derived);
        if (measured.row->contender->ours) {
            add_ratios(measured, all, derived);
        }
    }
    return derived;
}

void set_counters(Measured &measured, const Derived &derived)
{
    const Row &row = *measured.row;
    auto &counters = measured.median_run()->counters;
    if (row.bytes() > 0) {
        counters["bytes_per_second"] = derived.bytes_per_second;
        counters["bytes_read"] = row.bytes_read;
        counters["bytes_written"] = row.bytes_written;
        counters["working_set_bytes"] = static_cast<double>(row.working_set);
    }
    if (row.bytes() == 0 && row.operations > 0) {
        counters["operations_per_second"] = row.operations / measured.median;
    }
    counters["quartile_spread"] = measured.quartile_spread;
    if (row.threads > 0) {
        counters["host_threads"] = row.threads;
    }
    if (derived.roof_fraction > 0) {
        counters["roof_bytes_per_second"] = derived.roof_bytes_per_second;
        counters["roof_fraction"] = derived.roof_fraction;
        counters["sequential_roof_fraction"] = derived.sequential_fraction;
        counters["limit_fraction"] = derived.limit_fraction;
    }
    if (derived.arithmetic_bytes_per_second > 0) {
        counters["arithmetic_bytes_per_second"] = derived.arithmetic_bytes_per_second;
        if (derived.arithmetic_bytes_per_second < derived.roof_bytes_per_second) {
            counters["arithmetic_fraction"] = derived.limit_fraction;
        }
    }
    for (const auto &[peer, ratio] : derived.ratios) {
        counters["ratio_to_" + peer] = ratio;
    }
}

void judge_noise(const Index &index, Results &results)
{
    for (const Measured &first : results.rows) {
        if (first.row->kernel != "aa_1") {
            continue;
        }
        std::string name = first.row->name();
        name.replace(0, 4, "aa_2");
        const Measured *second = index.find(name);
        if (second != nullptr) {
            const double faster = std::min(first.median, second->median);
            results.noise =
                std::max(results.noise, std::fabs(first.median - second->median) / faster);
            results.noise_known = true;
        }
    }
    double real = 0, cpu = 0;
    for (const Measured &measured : results.rows) {
        if (measured.row->threads == 0) {
            real += measured.real_seconds;
            cpu += measured.cpu_seconds;
        }
    }
    results.cpu_share = real > 0 ? std::min(1.0, cpu / real) : 1;
    results.noisy = results.noise > noise_limit || results.cpu_share < least_cpu_share;
}

void judge_rates(const Index &index, Results &results)
{
    for (std::size_t i = 0; i < results.rows.size(); i++) {
        const Row &row = *results.rows[i].row;
        const double roof = index.best_rate(row.read_roofs, &Measured::fastest);
        if (roof > 0 && results.derived[i].bytes_per_second > incredible_factor * roof) {
            results.incredible.push_back(row.name());
        }
    }
}

} // namespace

Results evaluate(std::vector<Measured> rows)
{
    Results results;
    results.rows = std::move(rows);
    const Index index(results.rows);
    for (const Measured &measured : results.rows) {
        results.derived.push_back(derive(measured, results.rows, index));
    }
    for (std::size_t i = 0; i < results.rows.size(); i++) {
        set_counters(results.rows[i], results.derived[i]);
    }
    judge_noise(index, results);
    judge_rates(index, results);
    return results;
}

void write_json(std::ostream &stream, const Results &results)
{
    benchmark::JSONReporter reporter;
    reporter.SetOutputStream(&stream);
    reporter.SetErrorStream(&stream);
    const benchmark::BenchmarkReporter::Context context;
    reporter.ReportContext(context);
    for (const Measured &measured : results.rows) {
        reporter.ReportRuns(measured.runs);
    }
    reporter.Finalize();
}

void write_json(const std::string &path, const Results &results)
{
    const std::string unfinished = path + ".unfinished";
    std::ofstream file(unfinished);
    write_json(file, results);
    file.close();
    if (!file || std::rename(unfinished.c_str(), path.c_str()) != 0) {
        std::remove(unfinished.c_str());
        throw std::runtime_error("cannot write " + path);
    }
}

} // namespace bench
