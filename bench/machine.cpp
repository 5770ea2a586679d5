#include "machine.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <stdexcept>

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

extern "C" {
#include "cli/machine.h"
}

namespace bench
{
namespace
{

const std::string unknown = "unknown";

std::string first_line(const std::string &path)
{
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line.empty() ? unknown : line;
}

// The value of the first line "key : value" of a file; "" if there is none.
std::string value_in(const char *path, const std::string &key)
{
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        const std::size_t colon = line.find(':');
        if (colon != std::string::npos && line.compare(0, key.size(), key) == 0) {
            const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
            return begin == std::string::npos ? "" : line.substr(begin);
        }
    }
    return "";
}

std::string virtualised()
{
    const std::string flags = value_in("/proc/cpuinfo", "flags");
    if (!flags.empty()) {
        return (flags + " ").find(" hypervisor ") != std::string::npos ? "yes" : "no";
    }
    return unknown; // Arm has no such flag
}

std::string frequencies(const std::string &cpu)
{
    const std::string low = first_line(cpu + "/cpufreq/cpuinfo_min_freq");
    const std::string high = first_line(cpu + "/cpufreq/cpuinfo_max_freq");
    const std::string now = first_line(cpu + "/cpufreq/scaling_cur_freq");
    if (low == unknown && high == unknown && now == unknown) {
        return unknown;
    }
    return "min " + low + ", max " + high + ", now " + now + " kHz";
}

std::string turbo()
{
    const std::string none = first_line("/sys/devices/system/cpu/intel_pstate/no_turbo");
    if (none != unknown) {
        return none == "0" ? "on" : "off";
    }
    const std::string boost = first_line("/sys/devices/system/cpu/cpufreq/boost");
    return boost == unknown ? unknown : boost == "1" ? "on" : "off";
}

void find_caches(Machine &machine)
{
    attnres_cli_cache caches[16];
    const std::size_t count = attnres_cli_caches(caches, 16);
    for (std::size_t i = 0; i < count; i++) {
        if (caches[i].type[0] == 'i') {
            continue;
        }
        (caches[i].level == 1   ? machine.l1
         : caches[i].level == 2 ? machine.l2
                                : machine.l3) = caches[i].bytes;
    }
}

std::vector<int> allowed_cores(int first)
{
    std::vector<int> cores = {first};
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (int core = 0; core < CPU_SETSIZE; core++) {
            if (core != first && CPU_ISSET(static_cast<unsigned>(core), &set)) {
                cores.push_back(core);
            }
        }
    }
    return cores;
}

void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (core < 0 || core >= CPU_SETSIZE) {
        throw std::invalid_argument("there is no such core");
    }
    CPU_SET(static_cast<unsigned>(core), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        throw std::invalid_argument("cannot pin to core " + std::to_string(core));
    }
}

} // namespace

const char *Machine::regime(std::size_t bytes) const
{
    if (l1 == 0 && l2 == 0 && l3 == 0) {
        return "unknown";
    }
    return bytes <= l1 ? "L1" : bytes <= l2 ? "L2" : bytes <= l3 ? "L3" : "DRAM";
}

Machine look_at_machine(int core)
{
    Machine machine;
    machine.cores = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    machine.core = core >= 0 ? core : sched_getcpu();
    machine.allowed_cores = allowed_cores(machine.core);
    pin(machine.core);
    char name[128];
    attnres_cli_cpu_name(name, sizeof name);
    machine.cpu = name;
    find_caches(machine);
    const std::string cpu = "/sys/devices/system/cpu/cpu" + std::to_string(machine.core);
    machine.governor = first_line(cpu + "/cpufreq/scaling_governor");
    machine.frequency = frequencies(cpu);
    machine.turbo = turbo();
    machine.thp = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
    machine.virtualised = virtualised();
    machine.memory_bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                           static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    utsname system;
    machine.kernel =
        uname(&system) == 0 ? std::string(system.sysname) + " " + system.release : unknown;
    return machine;
}

double measured_mhz()
{
    using Clock = std::chrono::steady_clock;
    constexpr std::uint64_t rounds = 400000, chain = 10;
    double best = 0;
    for (int attempt = 0; attempt < 5; attempt++) {
        std::uint64_t value = 1;
        const auto begin = Clock::now();
        for (std::uint64_t i = 0; i < rounds; i++) {
            // Each step waits for the one before; the compiler may not merge them.
            for (std::uint64_t k = 0; k < chain; k++) {
                value += i;
                __asm__ volatile("" : "+r"(value));
            }
        }
        const std::chrono::duration<double, std::micro> time = Clock::now() - begin;
        best = std::max(best, static_cast<double>(rounds * chain) / time.count());
    }
    return best;
}

long huge_page_kib()
{
    const std::string text = value_in("/proc/self/smaps_rollup", "AnonHugePages");
    return text.empty() ? -1 : std::stol(text);
}

} // namespace bench
