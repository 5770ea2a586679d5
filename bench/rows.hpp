// The families of rows. Each call adds one row with its roofs.
#pragma once

#include "row.hpp"

namespace bench
{

struct ReadShape {
    attnres_dtype dtype;
    std::size_t tokens, width, sources;
    Layout layout = {};
    std::string extra = {}; // appended to the shape: "/offset:68"
    std::string sweep = {};
    int threads = 0; // 0: on this thread, no others around
};

struct BlockShape {
    attnres_dtype dtype;
    std::size_t tokens, width, layers, block;
    std::string sweep = {};
};

// rows_read.cpp: attnres_read over block-major sources, retrieved only.
void add_read(Suite &suite, const Contender &contender, const ReadShape &shape,
              const std::string &kernel = "read");
// One token at a time out of many, in random order: every row comes from memory.
void add_read_cold(Suite &suite, const Contender &contender, const ReadShape &shape);

// rows_block.cpp: attnres_block_sum, attnres_block_read.
void add_block_sum(Suite &suite, const Contender &contender, const BlockShape &shape);
void add_block_read(Suite &suite, const Contender &contender, const BlockShape &shape);

// rows_kernel.cpp: kernels of the dispatch table, called for each token.
void add_score(Suite &suite, const Contender &contender, const ReadShape &shape);
void add_mix(Suite &suite, const Contender &contender, const ReadShape &shape);
void add_normalize(Suite &suite, const Contender &contender, const ReadShape &shape);

// rows_k3.cpp: all reads of one token of Kimi K3, each with its own query, or all with one.
enum class Queries { own, one };
void add_k3_token(Suite &suite, const Contender &contender, Queries queries);

// rows_fused.cpp: delta, read, push and norm in one call, apart, and the read alone.
enum class Steps { fused, apart, bare };
void add_fused(Suite &suite, const Contender &contender, const ReadShape &shape, Steps steps);

// rows_queries.cpp: 24 queries over one bank, in one sweep or as single reads.
void add_queries(Suite &suite, const Contender &contender, const ReadShape &shape, bool sweep);

// rows.cpp: what runs by default, and what --full adds.
void add_default_rows(Suite &suite);
void add_full_rows(Suite &suite);
void add_smoke_rows(Suite &suite);

// For the families: "tokens:1/width:7168/sources:9", and a failed call is an error.
std::string shape_text(const ReadShape &shape);
void require_ok(attnres_status status, const char *call);

} // namespace bench
