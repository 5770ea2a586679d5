// Two runs of the same machine, row by row: a regression gate.
#pragma once

#include <istream>
#include <map>
#include <string>
#include <vector>

namespace bench
{

struct Recorded {
    std::map<std::string, std::string> context; // the strings of it
    std::map<std::string, double> medians;      // nanoseconds, of the library's rows
    std::map<std::string, double> roofs;        // likewise, of the plain reads
    double noise = 0;
};

// Throws if this is not a file of this program, or one of a smoke run or an emulator.
Recorded read_recorded(std::istream &stream, const std::string &name);
Recorded read_recorded(const std::string &path);

// Throws if the two cannot be compared. Prints what differs; returns how many rows became slower
// by more than 5 % beyond noise.
int compare(const Recorded &base, const Recorded &now);

} // namespace bench
