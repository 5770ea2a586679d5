#include "compare.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace bench
{
namespace
{

constexpr double slower_than = 0.05;

double nanoseconds(const std::string &unit)
{
    return unit == "ns" ? 1 : unit == "us" ? 1e3 : unit == "ms" ? 1e6 : 1e9;
}

std::string context_of(const Recorded &recorded, const std::string &key)
{
    const auto found = recorded.context.find(key);
    return found == recorded.context.end() ? "" : found->second;
}

std::vector<std::string> split(const std::string &text, const std::string &separator)
{
    std::vector<std::string> parts;
    std::size_t at = 0;
    while (at <= text.size()) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + separator.size();
    }
    return parts;
}

Recorded parse(const nlohmann::json &json)
{
    Recorded recorded;
    for (const auto &[key, value] : json.at("context").items()) {
        if (value.is_string()) {
            recorded.context[key] = value.get<std::string>();
        }
    }
    const auto levels = split(context_of(recorded, "levels"), ", ");
    for (const auto &entry : json.at("benchmarks")) {
        if (entry.value("aggregate_name", "") != "median") {
            continue;
        }
        const auto name = entry.at("run_name").get<std::string>();
        const auto parts = split(name, "/");
        const double time = entry.at("real_time").get<double>() *
                            nanoseconds(entry.at("time_unit").get<std::string>());
        if (parts[0].rfind("roof_read", 0) == 0) {
            recorded.roofs[name] = time;
        } else if (parts[0].rfind("roof_", 0) != 0 && parts[0].rfind("aa_", 0) != 0 &&
                   parts.size() > 2 &&
                   std::find(levels.begin(), levels.end(), parts[2]) != levels.end()) {
            recorded.medians[name] = time;
        }
    }
    recorded.noise = std::strtod(context_of(recorded, "noise").c_str(), nullptr);
    return recorded;
}

void refuse_meaningless(const Recorded &recorded, const std::string &name)
{
    for (const char *key : {"smoke", "emulated"}) {
        if (context_of(recorded, key).rfind("no", 0) != 0) {
            throw std::runtime_error(name + " is of a run with '" + key +
                                     "': its timings mean nothing");
        }
    }
    if (std::strtol(context_of(recorded, "repetitions").c_str(), nullptr, 10) < 9) {
        throw std::runtime_error(name + " has fewer than 9 repetitions");
    }
}

void print_differences(const Recorded &base, const Recorded &now)
{
    for (const char *key : {"library_version", "commit", "compiler", "flags", "level_flags",
                            "governor", "turbo", "page_mode", "kernel", "pinned_core"}) {
        if (context_of(base, key) != context_of(now, key)) {
            std::printf("%s: %s, now %s\n", key, context_of(base, key).c_str(),
                        context_of(now, key).c_str());
        }
    }
    for (const Recorded *recorded : {&base, &now}) {
        if (context_of(*recorded, "noisy") != "no") {
            std::printf("the %s run was noisy (A/A %.1f %%, %s of the core's time): do not trust "
                        "this comparison\n",
                        recorded == &base ? "base" : "new", 100 * recorded->noise,
                        context_of(*recorded, "cpu_share").c_str());
        }
    }
}

// If the machine itself reads at another speed, that is the first thing to know.
void print_machine_change(const Recorded &base, const Recorded &now)
{
    std::vector<double> ratios;
    for (const auto &[name, time] : base.roofs) {
        const auto found = now.roofs.find(name);
        if (found != now.roofs.end()) {
            ratios.push_back(found->second / time);
        }
    }
    if (!ratios.empty()) {
        std::sort(ratios.begin(), ratios.end());
        std::printf("plain reads: %+.1f %% time (median of %zu)\n",
                    100 * (ratios[ratios.size() / 2] - 1), ratios.size());
    }
}

} // namespace

Recorded read_recorded(std::istream &stream, const std::string &name)
{
    Recorded recorded;
    try {
        recorded = parse(nlohmann::json::parse(stream));
    } catch (const nlohmann::json::exception &) {
        throw std::runtime_error(name + " is not a JSON file of this program");
    }
    refuse_meaningless(recorded, name);
    return recorded;
}

Recorded read_recorded(const std::string &path)
{
    std::ifstream file(path);
    if (!file) {
        throw std::runtime_error("cannot read " + path);
    }
    return read_recorded(file, path);
}

int compare(const Recorded &base, const Recorded &now)
{
    for (const char *key : {"cpu", "cores", "virtualised"}) {
        if (context_of(base, key) != context_of(now, key)) {
            throw std::runtime_error("these are two machines: " + std::string(key) + " is " +
                                     context_of(base, key) + " and " + context_of(now, key));
        }
    }
    const double margin = slower_than + std::max(base.noise, now.noise);
    int slower = 0, faster = 0, both = 0;
    print_differences(base, now);
    print_machine_change(base, now);
    for (const auto &[name, time] : now.medians) {
        const auto found = base.medians.find(name);
        if (found == base.medians.end()) {
            continue;
        }
        const double change = time / found->second - 1;
        both++;
        faster += change < -margin ? 1 : 0;
        if (change > margin) {
            slower++;
            std::printf("slower: %s %.4g ns, now %.4g ns, %+.1f %%\n", name.c_str(), found->second,
                        time, 100 * change);
        }
    }
    if (both == 0) {
        throw std::runtime_error("the two files have no row in common");
    }
    std::printf("%d rows compared, %zu and %zu only in one; margin %.1f %%: %d slower, %d faster\n",
                both, base.medians.size() - static_cast<std::size_t>(both),
                now.medians.size() - static_cast<std::size_t>(both), 100 * margin, slower, faster);
    return slower;
}

} // namespace bench
