#include "memory.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace bench
{
namespace
{

constexpr std::size_t page_multiple = std::size_t{2} << 20;
constexpr int kind_outputs = 0; // inputs: the dtype; queries: 16 + the dtype
constexpr int kind_queries = 16;

std::uint64_t next_random(std::uint64_t &state) // SplitMix64
{
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Sign and mantissa as they come, one of four exponents: 2^(exponent) up to 2^(exponent + 4).
template <typename Bits>
void fill(std::byte *data, std::size_t bytes, int mantissa_bits, int exponent_bits, int exponent)
{
    std::uint64_t state = 0x617474;
    const auto one = std::uint64_t{1};
    const std::uint64_t keep = (one << (8 * sizeof(Bits) - 1)) | ((one << mantissa_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const auto base = static_cast<std::uint64_t>(bias + exponent);

    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
        const std::uint64_t random = next_random(state);
        Bits elements[sizeof(std::uint64_t) / sizeof(Bits)];
        for (std::size_t i = 0; i < std::size(elements); i++) {
            const std::uint64_t bits = random >> (8 * sizeof(Bits) * i);
            const std::uint64_t power = base + ((bits >> mantissa_bits) & 3);
            elements[i] = static_cast<Bits>((bits & keep) | (power << mantissa_bits));
        }
        std::memcpy(data + at, elements, sizeof elements);
    }
}

void fill_dtype(attnres_dtype dtype, std::byte *data, std::size_t bytes, int exponent)
{
    switch (dtype) {
    case ATTNRES_F32:
        return fill<std::uint32_t>(data, bytes, 23, 8, exponent);
    case ATTNRES_F64:
        return fill<std::uint64_t>(data, bytes, 52, 11, exponent);
    case ATTNRES_F16:
        return fill<std::uint16_t>(data, bytes, 10, 5, exponent);
    case ATTNRES_BF16:
        return fill<std::uint16_t>(data, bytes, 7, 8, exponent);
    }
}

std::size_t resident_bytes()
{
    unsigned long pages = 0;
    std::FILE *file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr) {
        return 0;
    }
    if (std::fscanf(file, "%*u %lu", &pages) != 1) {
        pages = 0;
    }
    std::fclose(file);
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

} // namespace

Arena::Arena(std::size_t bytes, bool huge)
    : data_(nullptr), bytes_((bytes + page_multiple - 1) / page_multiple * page_multiple)
{
    void *memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
#ifdef MADV_HUGEPAGE
    if (huge) {
        madvise(memory, bytes_, MADV_HUGEPAGE);
    }
#else
    (void)huge;
#endif
    data_ = static_cast<std::byte *>(memory);
    std::memset(data_, 0x3c, bytes_);
}

Arena::~Arena()
{
    munmap(data_, bytes_);
}

bool Arena::resident() const
{
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages((bytes_ + page - 1) / page);
    if (mincore(data_, bytes_, pages.data()) != 0) {
        return false;
    }
    for (unsigned char state : pages) {
        if ((state & 1) == 0) {
            return false;
        }
    }
    return true;
}

Memory::Memory(bool huge) : huge_(huge)
{
}

Memory::~Memory() = default;

void Memory::reserve(attnres_dtype dtype, std::size_t input_bytes, std::size_t output_bytes)
{
    reserved_[dtype] = std::max(reserved_[dtype], input_bytes);
    reserved_[kind_outputs] = std::max(reserved_[kind_outputs], output_bytes);
}

void Memory::reserve_queries(attnres_dtype accumulator, std::size_t elements)
{
    std::size_t &bytes = reserved_[kind_queries + accumulator];
    bytes = std::max(bytes, elements * attnres_dtype_size(accumulator));
}

std::size_t Memory::reserved_bytes() const
{
    std::size_t sum = 0;
    for (const auto &[kind, bytes] : reserved_) {
        sum += bytes;
    }
    return sum;
}

const Arena &Memory::arena(int kind, std::size_t bytes, attnres_dtype dtype, int exponent)
{
    const auto found = arenas_.find(kind);
    if (found != arenas_.end()) {
        return found->second;
    }
    const Arena &made = arenas_
                            .emplace(std::piecewise_construct, std::forward_as_tuple(kind),
                                     std::forward_as_tuple(bytes, huge_))
                            .first->second;
    fill_dtype(dtype, made.data(), made.bytes(), exponent);
    return made;
}

const std::byte *Memory::inputs(attnres_dtype dtype)
{
    return arena(dtype, reserved_[dtype], dtype, -4).data();
}

const void *Memory::queries(attnres_dtype accumulator)
{
    const int kind = kind_queries + accumulator;
    return arena(kind, reserved_[kind], accumulator, -10).data();
}

std::byte *Memory::outputs()
{
    return arena(kind_outputs, reserved_[kind_outputs], ATTNRES_F32, -4).data();
}

void Memory::check_resident() const
{
    std::size_t sum = 0;
    for (const auto &[kind, arena] : arenas_) {
        sum += arena.bytes();
        if (!arena.resident()) {
            throw std::runtime_error("not all pages of the working set are in memory");
        }
    }
    const std::size_t resident = resident_bytes();
    if (resident != 0 && resident < sum) {
        throw std::runtime_error("the process is smaller than its working set");
    }
}

namespace
{

// Calls place(offset) for each row set; returns the end of the last one.
template <typename Place>
std::size_t walk(std::size_t count, std::size_t bytes, const Layout &layout, Place place)
{
    std::size_t at = layout.offset, end = layout.offset;
    for (std::size_t i = 0; i < count; i++) {
        place(at);
        end = at + bytes;
        at = (end + 63) / 64 * 64 + layout.offset % 64 + layout.gap;
        if (layout.equal) {
            at = (end + 4095) / 4096 * 4096 + layout.offset % 4096;
        }
    }
    return end;
}

} // namespace

Layout output_layout(const Layout &inputs)
{
    Layout layout = inputs;
    layout.offset += inputs.equal ? 0 : 1984;
    return layout;
}

std::vector<attnres_rows> place(const std::byte *base, std::size_t count, std::size_t bytes,
                                const Layout &layout)
{
    std::vector<attnres_rows> sets;
    walk(count, bytes, layout, [&](std::size_t at) { sets.push_back({base + at, 0}); });
    return sets;
}

std::vector<attnres_rows_out> place_out(std::byte *base, std::size_t count, std::size_t bytes,
                                        const Layout &layout)
{
    std::vector<attnres_rows_out> sets;
    walk(count, bytes, layout, [&](std::size_t at) { sets.push_back({base + at, 0}); });
    return sets;
}

std::size_t placed_bytes(std::size_t count, std::size_t bytes, const Layout &layout)
{
    return walk(count, bytes, layout, [](std::size_t) {});
}

} // namespace bench
