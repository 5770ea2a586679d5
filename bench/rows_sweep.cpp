// What --full adds: one size varied at a time, to see whether cost grows with work and where not.
#include "rows.hpp"

#include <algorithm>

namespace bench
{
namespace
{

constexpr attnres_dtype dtypes[] = {ATTNRES_F32, ATTNRES_BF16};

void sweep_reads(Suite &suite, const Contender &contender, attnres_dtype dtype)
{
    for (const std::size_t width : {64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
        add_read(suite, contender, {dtype, 1, width, 9, {}, {}, "width"});
    }
    for (const std::size_t sources : {1, 2, 3, 4, 6, 8, 9, 12, 16, 24, 32, 48, 64}) {
        add_read(suite, contender, {dtype, 1, 7168, sources, {}, {}, "sources"});
    }
    for (const std::size_t tokens : {1, 4, 16, 64, 256, 1024, 4096}) {
        add_read(suite, contender, {dtype, tokens, 2304, 10, {}, {}, "tokens"});
    }
}

void sweep_blocks(Suite &suite, const Contender &contender, attnres_dtype dtype)
{
    for (const std::size_t layers : {6, 12, 24, 54, 108}) {
        add_block_read(suite, contender, {dtype, 64, 2304, layers, 6, "layers"});
    }
    for (const std::size_t block : {1, 2, 3, 6, 9, 18, 27, 54}) {
        add_block_read(suite, contender, {dtype, 64, 2304, 54, block, "block"});
    }
}

// 1, 2, 4, ... and all cores, on rows in the cache and in memory.
void sweep_threads(Suite &suite, const Contender &contender, attnres_dtype dtype)
{
    const auto cores = static_cast<int>(suite.machine.allowed_cores.size());
    for (int threads = 1;; threads = std::min(2 * threads, cores)) {
        ReadShape shape = {dtype, 16, 7168, 9, {}, {}, "threads-in-cache"};
        shape.extra = "/threads:" + std::to_string(threads);
        shape.threads = threads;
        add_read(suite, contender, shape);
        shape.tokens = 512;
        shape.sweep = "threads";
        add_read(suite, contender, shape);
        if (threads == cores) {
            break;
        }
    }
}

// Row sets on a cache line or 4 bytes beside it, at different or at the same offset in their page.
void sweep_alignments(Suite &suite, const Contender &contender, attnres_dtype dtype)
{
    for (const std::size_t tokens : {1, 512}) {
        for (const std::size_t offset : {64, 68}) {
            for (const bool equal : {false, true}) {
                ReadShape shape = {dtype, tokens, 7168, 9, {}, {}, "alignment"};
                shape.layout.offset = offset;
                shape.layout.equal = equal;
                shape.extra = "/offset:" + std::to_string(offset) + (equal ? "/equal" : "/apart");
                add_read(suite, contender, shape);
            }
        }
    }
}

// The kernels where their rows are: L1, L3, memory.
void add_kernel_rows(Suite &suite, const Contender &contender)
{
    for (const attnres_dtype dtype : dtypes) {
        for (const ReadShape &shape : {ReadShape{dtype, 1, 512, 9}, ReadShape{dtype, 16, 7168, 9},
                                       ReadShape{dtype, 512, 7168, 9}}) {
            add_score(suite, contender, shape);
            add_mix(suite, contender, shape);
        }
        add_normalize(suite, contender, {dtype, 4096, 7168, 1});
    }
}

} // namespace

void add_full_rows(Suite &suite)
{
    for (const Contender *level : suite.contenders.levels()) {
        add_kernel_rows(suite, *level);
        if (level->level == ATTNRES_LEVEL_SCALAR && level != &suite.contenders.best()) {
            continue; // sweeps of the slowest level take long and tell little
        }
        for (const attnres_dtype dtype : dtypes) {
            sweep_reads(suite, *level, dtype);
            sweep_blocks(suite, *level, dtype);
            sweep_threads(suite, *level, dtype);
            sweep_alignments(suite, *level, dtype);
            add_read_cold(suite, *level, {dtype, 512, 7168, 9});
        }
    }
    for (const Contender &contender : suite.contenders.present) {
        add_read(suite, contender, {ATTNRES_F64, 512, 7168, 9});
    }
}

} // namespace bench
