#include "roofs.hpp"

#include "build.h"
#include "roof.h"
#include "threads.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace bench
{
namespace
{

bool has_feature(const char *name)
{
    std::vector<attnres_feature> features(attnres_features(nullptr, 0));
    attnres_features(features.data(), features.size());
    return std::any_of(features.begin(), features.end(), [name](const attnres_feature &feature) {
        return std::strcmp(feature.name, name) == 0 && feature.present != 0;
    });
}

bool has_all(std::initializer_list<const char *> names)
{
    return std::all_of(names.begin(), names.end(), has_feature);
}

const roof &best_roof()
{
#if BENCH_ROOF_AVX512
    if (has_all({"avx512f", "avx512bw", "avx512dq", "avx512vl", "os-zmm"})) {
        return roof_avx512;
    }
#endif
#if BENCH_ROOF_AVX2
    if (has_all({"avx", "avx2", "fma", "f16c", "os-ymm"})) {
        return roof_avx2;
    }
#endif
#if BENCH_ROOF_NEON
    if (has_all({"asimd"})) {
        return roof_neon;
    }
#endif
    return roof_scalar;
}

const roof &roof_of(attnres_level level)
{
    switch (level) {
#if BENCH_ROOF_AVX2
    case ATTNRES_LEVEL_AVX2:
        return roof_avx2;
#endif
#if BENCH_ROOF_AVX512
    case ATTNRES_LEVEL_AVX512:
        return roof_avx512;
#endif
#if BENCH_ROOF_NEON
    case ATTNRES_LEVEL_NEON:
        return roof_neon;
#endif
    default:
        return roof_scalar;
    }
}

using Transfers = std::vector<roof_transfer>;

Transfers transfers_of(Memory &memory, const Traffic &traffic, bool copying)
{
    Transfers transfers;
    for (const attnres_rows &set :
         place(memory.inputs(traffic.dtype), traffic.count, traffic.bytes, traffic.layout)) {
        transfers.push_back({set.data, nullptr});
    }
    if (copying) {
        const auto out = place_out(memory.outputs(), traffic.copied.size(), traffic.bytes,
                                   output_layout(traffic.layout));
        for (std::size_t i = 0; i < out.size(); i++) {
            transfers[traffic.copied[i]].to = out[i].data;
        }
    }
    return transfers;
}

Task make_pass(Suite &suite, const Traffic &traffic, bool copying, bool streams)
{
    const Transfers whole = transfers_of(suite.memory, traffic, copying);
    const auto loop = streams ? best_roof().streams : best_roof().sequential;
    const std::size_t token_bytes = traffic.bytes / traffic.tokens;
    std::vector<Task> parts;
    for (int i = 0; i < std::max(1, traffic.threads); i++) {
        const auto [begin, end] = share(traffic.tokens, i, std::max(1, traffic.threads));
        const std::size_t offset = begin * token_bytes, bytes = (end - begin) * token_bytes;
        auto part = std::make_shared<Transfers>(whole);
        for (roof_transfer &transfer : *part) {
            transfer.from = static_cast<const std::byte *>(transfer.from) + offset;
            transfer.to =
                transfer.to == nullptr ? nullptr : static_cast<std::byte *>(transfer.to) + offset;
        }
        parts.emplace_back();
        parts.back().run = [part, loop, bytes] {
            std::uint64_t sum = loop(part->data(), part->size(), bytes);
            benchmark::DoNotOptimize(sum);
        };
    }
    return traffic.threads == 0 ? parts.front() : in_threads(suite.machine, parts);
}

const char *kernel_name(bool copying, bool streams)
{
    return copying ? (streams ? "roof_copy_streams" : "roof_copy")
                   : (streams ? "roof_read_streams" : "roof_read");
}

// Data of f16 and bf16 are the same to a roof.
attnres_dtype roof_dtype(attnres_dtype dtype)
{
    return dtype == ATTNRES_F16 ? ATTNRES_BF16 : dtype;
}

Row roof_row(Suite &suite, Traffic traffic, bool copying, bool streams)
{
    traffic.dtype = roof_dtype(traffic.dtype);
    Row row;
    row.kernel = kernel_name(copying, streams);
    row.dtype = dtype_name(traffic.dtype);
    row.contender_name = roof_level();
    row.shape = traffic.shape;
    row.type = traffic.dtype;
    const std::size_t written = copying ? traffic.copied.size() : 0;
    row.bytes_read = static_cast<double>(traffic.count * traffic.bytes);
    row.bytes_written = static_cast<double>(written * traffic.bytes);
    row.working_set = (traffic.count + written) * traffic.bytes;
    row.input_bytes = placed_bytes(traffic.count, traffic.bytes, traffic.layout);
    row.output_bytes = placed_bytes(written, traffic.bytes, output_layout(traffic.layout));
    row.threads = traffic.threads;
    row.make = [&suite, traffic, copying, streams](const Contender *) {
        return make_pass(suite, traffic, copying, streams);
    };
    return row;
}

std::vector<std::string> roof_names(const Traffic &traffic, bool copying)
{
    std::vector<std::string> names;
    for (const bool streams : {false, true}) {
        names.push_back(std::string(kernel_name(copying, streams)) + "/" +
                        dtype_name(roof_dtype(traffic.dtype)) + "/" + roof_level() + "/" +
                        traffic.shape);
    }
    return names;
}

template <typename Number>
Row registers_row(attnres_level level, attnres_dtype dtype,
                  Number (*loop)(std::size_t rounds, std::size_t *lanes))
{
    constexpr std::size_t rounds = 20000;
    std::size_t lanes = 0;
    loop(1, &lanes);
    Row row;
    row.kernel = "roof_fma";
    row.dtype = dtype_name(dtype);
    row.contender_name = attnres_level_name(level);
    row.shape = "registers";
    row.type = dtype;
    row.operations = static_cast<double>(rounds * lanes);
    row.make = [loop](const Contender *) {
        Task task;
        task.run = [loop] {
            std::size_t count = 0;
            Number sum = loop(rounds, &count);
            benchmark::DoNotOptimize(sum);
        };
        return task;
    };
    return row;
}

} // namespace

const char *roof_level()
{
    return best_roof().level;
}

Row fma_roof(attnres_level level, attnres_dtype dtype)
{
    const roof &roof = roof_of(level);
    if (dtype == ATTNRES_F64) {
        return registers_row(level, ATTNRES_F64, roof.fma_f64);
    }
    return registers_row(level, ATTNRES_F32, roof.fma_f32);
}

std::string fma_roof_name(attnres_level level, attnres_dtype dtype)
{
    return std::string("roof_fma/") + dtype_name(attnres_dtype_accumulator(dtype)) + "/" +
           attnres_level_name(level) + "/registers";
}

void set_traffic(Row &row, const Traffic &traffic, Against against)
{
    const std::size_t written = traffic.copied.size();
    row.type = traffic.dtype;
    row.dtype = dtype_name(traffic.dtype);
    row.shape = traffic.shape;
    row.bytes_read = static_cast<double>(traffic.count * traffic.bytes);
    row.bytes_written = static_cast<double>(written * traffic.bytes);
    row.working_set = (traffic.count + written) * traffic.bytes;
    row.input_bytes = placed_bytes(traffic.count, traffic.bytes, traffic.layout);
    row.output_bytes = placed_bytes(written, traffic.bytes, output_layout(traffic.layout));
    row.threads = traffic.threads;
    row.read_roofs = roof_names(traffic, false);
    row.roofs = against == Against::read ? row.read_roofs : roof_names(traffic, true);
}

std::vector<Row> roofs_of(Suite &suite, const Row &row, const Traffic &traffic)
{
    std::vector<Row> roofs;
    for (const bool streams : {false, true}) {
        roofs.push_back(roof_row(suite, traffic, false, streams));
        if (!traffic.copied.empty()) {
            roofs.push_back(roof_row(suite, traffic, true, streams));
        }
    }
    roofs.push_back(fma_roof(row.contender->level, row.type));
    return roofs;
}

} // namespace bench
