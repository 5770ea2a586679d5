// Who is measured: every level of the library, and its peers.
//
// A peer is anything that offers the library's own C calls, so each row of the benchmark works for
// all of them: hand-written C, the library once more with compiler-vectorised kernels, ggml.
#pragma once

#include <attnres.h>

#include <functional>
#include <string>
#include <vector>

struct attnres_kernels;

namespace bench
{

struct Api {
    decltype(&::attnres_read) read = nullptr; // nullptr: this one has no such call
    decltype(&::attnres_block_sum) block_sum = nullptr;
    decltype(&::attnres_block_read) block_read = nullptr;
    const ::attnres_kernels *(*kernels)(attnres_dtype) = nullptr; // of the level that is set
};

struct Contender {
    std::string name; // "avx2", "peer-c", "autovec-avx2"; takes the level's place in row names
    bool ours = false;
    bool exact = false;                         // must give the library's bits
    attnres_level level = ATTNRES_LEVEL_SCALAR; // whose arithmetic limit it is held against
    Api api;
    std::function<void()> activate; // before each run
};

struct Absent {
    std::string name;
    std::string why;
};

struct Contenders {
    std::vector<Contender> present; // the library's levels first, lowest first
    std::vector<Absent> absent;

    const Contender &best() const; // the library's highest usable level
    std::vector<const Contender *> levels() const;
};

Contenders find_contenders();

} // namespace bench
