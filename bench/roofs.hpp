// Rows for what the machine can do at best, measured in the same run as everything else.
#pragma once

#include "row.hpp"

namespace bench
{

// Row sets as a kernel has them, and what is written besides.
struct Traffic {
    attnres_dtype dtype;
    std::string shape; // of the kernel's row name; the roofs get the same
    std::size_t count; // row sets read
    std::size_t bytes; // of each
    Layout layout;
    std::vector<std::size_t> copied; // per row set written: which of the read ones goes there
    int threads = 0;
    std::size_t tokens = 1; // that threads share
};

// The rows are "roof_read" (all row sets are read, one after the other), "roof_copy" (the copied
// ones are written as well), and both once more with up to four row sets side by side:
// "..._streams". The faster of the two is the roof.

// Fused multiply-adds on registers, for the accumulators of a dtype at a level.
Row fma_roof(attnres_level level, attnres_dtype dtype);
std::string fma_roof_name(attnres_level level, attnres_dtype dtype);

// The vector level that the roofs use: the highest that CPU and system allow, ATTNRES_LEVEL or not.
const char *roof_level();

// Fills what follows from the traffic: bytes, working set, memory to reserve, names of the roofs.
// A row is measured against the plain read (in proportion to its bytes) or against the copy.
enum class Against { read, copy };
void set_traffic(Row &row, const Traffic &traffic, Against against);
std::vector<Row> roofs_of(Suite &suite, const Row &row, const Traffic &traffic);

} // namespace bench
