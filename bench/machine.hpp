// What the system tells about the machine. Anything it does not tell is "unknown".
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace bench
{

struct Machine {
    std::string cpu, governor, frequency, turbo, thp, virtualised, kernel;
    std::size_t cores = 0, memory_bytes = 0;
    std::size_t l1 = 0, l2 = 0, l3 = 0; // data bytes of one core's caches, 0 if unknown
    int core = -1;                      // the one this thread is pinned to
    std::vector<int> allowed_cores;     // that one, then all others this process may use

    // "L1", "L2", "L3" or "DRAM": the smallest that holds these bytes.
    const char *regime(std::size_t bytes) const;
};

// Pins the calling thread to a core (-1: the one it is on) and looks around.
Machine look_at_machine(int core);

// Clock of this core in MHz, from a chain of dependent additions: what it does, not what it says.
double measured_mhz();

// Memory of this process in huge pages, in KiB; -1 if unknown.
long huge_page_kib();

} // namespace bench
