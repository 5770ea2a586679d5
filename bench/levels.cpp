#include "levels.hpp"

#include "measure.hpp"
#include "rows.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <unistd.h>

namespace bench
{
namespace
{

using Clock = std::chrono::steady_clock;

constexpr std::size_t width_max = 256, sources_max = 12;
constexpr double allowed = 1.10;
constexpr int retries = 4;

struct Call {
    attnres_shape shape;
    std::vector<attnres_rows> sources;
    attnres_read_args args;
};

double seconds_of(const Contender &level, const Call &call, int calls)
{
    level.activate();
    require_ok(attnres_read(&call.shape, &call.args), "read"); // warms up
    const auto begin = Clock::now();
    for (int i = 0; i < calls; i++) {
        attnres_read(&call.shape, &call.args);
    }
    return std::chrono::duration<double>(Clock::now() - begin).count() / calls;
}

struct Pair {
    double lower, higher; // medians
    double ratio() const
    {
        return higher / lower;
    }
};

// Repetitions of both, interleaved, in turns the one or the other first.
Pair measure_pair(const Contender &lower, const Contender &higher, const Call &call,
                  int repetitions, double seconds)
{
    const double once = std::max(1e-9, seconds_of(lower, call, 4));
    const int calls = std::max(4, static_cast<int>(seconds / once));
    std::vector<double> times[2];
    for (int i = 0; i < repetitions; i++) {
        for (int k = 0; k < 2; k++) {
            const int which = (i + k) % 2;
            times[which].push_back(seconds_of(which == 0 ? lower : higher, call, calls));
        }
    }
    return {median_of(times[0]), median_of(times[1])};
}

// Slower each time it is looked at, ever more carefully; otherwise it was noise.
bool is_slower(const Contender &lower, const Contender &higher, const Call &call, Pair &pair)
{
    pair = measure_pair(lower, higher, call, 9, 15e-6);
    for (int attempt = 0; attempt < retries && pair.ratio() > allowed; attempt++) {
        pair = measure_pair(lower, higher, call, 21, 50e-6 * (attempt + 1));
    }
    return pair.ratio() > allowed;
}

void set_shape(Memory &memory, attnres_dtype dtype, std::size_t width, std::size_t sources,
               Call &call)
{
    const std::size_t bytes = width * attnres_dtype_size(dtype);
    call.shape = {dtype, 1, width};
    call.sources = place(memory.inputs(dtype), sources, bytes);
    call.args = {};
    call.args.sources = call.sources.data();
    call.args.source_count = sources;
    call.args.query = memory.queries(attnres_dtype_accumulator(dtype));
    call.args.eps = 1e-5;
    call.args.retrieved = place_out(memory.outputs(), 1, bytes, output_layout({}))[0];
}

int check_dtype(const Contender &lower, const Contender &higher, Memory &memory,
                attnres_dtype dtype)
{
    int slower = 0, shapes = 0;
    double worst = 0;
    std::vector<double> ratios;
    Call call;
    for (std::size_t width = 1; width <= width_max; width++) {
        if (isatty(STDERR_FILENO) != 0) {
            std::fprintf(stderr, "\r\033[K%s %s width %zu", higher.name.c_str(), dtype_name(dtype),
                         width);
        }
        for (std::size_t sources = 1; sources <= sources_max; sources++) {
            Pair pair;
            set_shape(memory, dtype, width, sources, call);
            shapes++;
            if (is_slower(lower, higher, call, pair)) {
                slower++;
                std::printf("%s: %s %.0f ns, %s %.0f ns, %.2f times, at width %zu, %zu sources\n",
                            dtype_name(dtype), higher.name.c_str(), pair.higher * 1e9,
                            lower.name.c_str(), pair.lower * 1e9, pair.ratio(), width, sources);
            }
            worst = std::max(worst, pair.ratio());
            ratios.push_back(1 / pair.ratio());
        }
    }
    if (isatty(STDERR_FILENO) != 0) {
        std::fprintf(stderr, "\r\033[K");
    }
    std::printf("%s: %s against %s: %d shapes, median %.2f times as fast, at worst %.2f; "
                "%d slower by more than 10 %%\n",
                dtype_name(dtype), higher.name.c_str(), lower.name.c_str(), shapes,
                median_of(ratios), 1 / worst, slower);
    return slower;
}

} // namespace

int check_levels(const Contenders &contenders, Memory &memory)
{
    constexpr attnres_dtype dtypes[] = {ATTNRES_F32, ATTNRES_BF16, ATTNRES_F16, ATTNRES_F64};
    const auto levels = contenders.levels();
    int slower = 0;
    for (const attnres_dtype dtype : dtypes) {
        const std::size_t bytes = width_max * attnres_dtype_size(dtype);
        memory.reserve(dtype, placed_bytes(sources_max, bytes),
                       placed_bytes(1, bytes, output_layout({})));
        memory.reserve_queries(attnres_dtype_accumulator(dtype), width_max);
    }
    for (std::size_t i = 1; i < levels.size(); i++) {
        for (const attnres_dtype dtype : dtypes) {
            slower += check_dtype(*levels[i - 1], *levels[i], memory, dtype);
        }
    }
    if (levels.size() < 2) {
        std::printf("only one level can be used here\n");
    }
    return slower;
}

} // namespace bench
