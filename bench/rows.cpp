#include "rows.hpp"

namespace bench
{
namespace
{

const attnres_dtype dtypes[] = {ATTNRES_F32, ATTNRES_BF16, ATTNRES_F16, ATTNRES_F64};

std::size_t many_tokens(attnres_dtype dtype)
{
    return attnres_dtype_size(dtype) == 2 ? 2048 : 512;
}

// In L1, one token (L2), 16 tokens (L3), many (DRAM); Kimi K3's width and largest read.
std::vector<ReadShape> read_shapes(attnres_dtype dtype)
{
    const std::size_t small = dtype == ATTNRES_F64 ? 256 : 512;
    return {{dtype, 1, small, 9},
            {dtype, 1, 7168, 9},
            {dtype, 16, 7168, 9},
            {dtype, many_tokens(dtype), 7168, 9}};
}

// The same rows twice: what differs is noise.
void add_noise_rows(Suite &suite)
{
    const Contender &best = suite.contenders.best();
    for (const char *name : {"aa_1", "aa_2"}) {
        add_read(suite, best, {ATTNRES_F32, 1, 7168, 9}, name);
        add_read(suite, best, {ATTNRES_BF16, 16, 7168, 9}, name);
        add_read(suite, best, {ATTNRES_F32, 512, 7168, 9}, name);
    }
}

// Seconds per read: for --full.
bool takes_too_long(const Contender &contender, const ReadShape &shape)
{
    return shape.dtype == ATTNRES_F64 && shape.tokens > 16 && contender.ours &&
           contender.level == ATTNRES_LEVEL_SCALAR;
}

void add_contender(Suite &suite, const Contender &contender)
{
    for (const attnres_dtype dtype : dtypes) {
        for (const ReadShape &shape : read_shapes(dtype)) {
            if (!takes_too_long(contender, shape)) {
                add_read(suite, contender, shape);
            }
        }
    }
    // Kimi Linear: 54 sublayers, 6 to a block.
    for (const attnres_dtype dtype : {ATTNRES_F32, ATTNRES_BF16}) {
        for (const std::size_t tokens : {std::size_t{1}, std::size_t{512}}) {
            add_block_sum(suite, contender, {dtype, tokens, 2304, 54, 6});
            add_block_read(suite, contender, {dtype, tokens, 2304, 54, 6});
        }
        add_score(suite, contender, {dtype, 1, 7168, 9});
        add_mix(suite, contender, {dtype, 1, 7168, 9});
        add_normalize(suite, contender, {dtype, 1, 7168, 1});
    }
    for (const std::size_t tokens : {std::size_t{1}, std::size_t{512}}) {
        for (const Steps steps : {Steps::fused, Steps::apart, Steps::bare}) {
            add_fused(suite, contender, {ATTNRES_BF16, tokens, 7168, 9}, steps);
        }
    }
    if (contender.level != ATTNRES_LEVEL_SCALAR) { /* seconds per call there */
        add_queries(suite, contender, {ATTNRES_BF16, 512, 7168, 8}, true);
        add_queries(suite, contender, {ATTNRES_BF16, 512, 7168, 8}, false);
    }
    add_k3_token(suite, contender, Queries::own);
    add_k3_token(suite, contender, Queries::one);
}

} // namespace

void add_default_rows(Suite &suite)
{
    add_noise_rows(suite);
    for (const Contender &contender : suite.contenders.present) {
        add_contender(suite, contender);
    }
}

void add_smoke_rows(Suite &suite)
{
    for (const Contender &contender : suite.contenders.present) {
        for (const attnres_dtype dtype : dtypes) {
            add_read(suite, contender, {dtype, 2, 130, 5});
            ReadShape split = {dtype, 2, 130, 5, {}, "/threads:2"};
            split.threads = 2;
            add_read(suite, contender, split);
            add_score(suite, contender, {dtype, 1, 512, 9});
            add_mix(suite, contender, {dtype, 1, 512, 9});
            add_normalize(suite, contender, {dtype, 1, 512, 1});
            add_block_sum(suite, contender, {dtype, 2, 130, 7, 3});
            add_block_read(suite, contender, {dtype, 2, 130, 7, 3});
        }
    }
    for (const char *name : {"aa_1", "aa_2"}) {
        add_read(suite, suite.contenders.best(), {ATTNRES_F32, 1, 512, 9}, name);
    }
}

} // namespace bench
