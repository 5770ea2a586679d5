// The memory that rows work on. All rows of a dtype share one arena, so every level and peer sees
// the same data on the same physical pages; an A/A difference is then never one of placement.
#pragma once

#include <attnres.h>

#include <cstddef>
#include <map>
#include <vector>

namespace bench
{

// How the row sets of a call lie in the arena. The default keeps their starts apart modulo the
// page size: equal offsets compete for the same cache sets, which is a case of its own (--full).
struct Layout {
    std::size_t offset = 0; // of the first row set, in bytes after a page boundary
    std::size_t gap = 320;  // bytes left free after each row set
    bool equal = false;     // all starts at the same offset modulo 4096 instead
};

// Pages from the system, every one of them written.
class Arena
{
  public:
    Arena(std::size_t bytes, bool huge);
    ~Arena();
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    std::byte *data() const
    {
        return data_;
    }
    std::size_t bytes() const
    {
        return bytes_;
    }
    bool resident() const;

  private:
    std::byte *data_;
    std::size_t bytes_;
};

class Memory
{
  public:
    explicit Memory(bool huge);
    ~Memory();

    // Before anything is used: what some row is going to need.
    void reserve(attnres_dtype dtype, std::size_t input_bytes, std::size_t output_bytes);
    void reserve_queries(attnres_dtype accumulator, std::size_t elements);
    std::size_t reserved_bytes() const;

    // Random non-zero elements of a dtype, 1/16 to 1 in magnitude, the same in every run.
    const std::byte *inputs(attnres_dtype dtype);
    // The same, small enough that logits stay near 1 and no weight underflows.
    const void *queries(attnres_dtype accumulator);
    std::byte *outputs();

    // Throws unless all pages are in memory and the process is at least as large as they are.
    void check_resident() const;

  private:
    const Arena &arena(int kind, std::size_t bytes, attnres_dtype dtype, int exponent);

    bool huge_;
    std::map<int, std::size_t> reserved_;
    std::map<int, Arena> arenas_;
};

// For what is written next to inputs in that layout: never at the offset of one of them.
Layout output_layout(const Layout &inputs);

// Row sets of `bytes` each, one after the other as the layout says.
std::vector<attnres_rows> place(const std::byte *base, std::size_t count, std::size_t bytes,
                                const Layout &layout = {});
std::vector<attnres_rows_out> place_out(std::byte *base, std::size_t count, std::size_t bytes,
                                        const Layout &layout = {});
// Bytes from base to the end of the last one.
std::size_t placed_bytes(std::size_t count, std::size_t bytes, const Layout &layout = {});

} // namespace bench
