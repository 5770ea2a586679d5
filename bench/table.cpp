#include "table.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace bench
{
namespace
{

using Cells = std::vector<std::string>;

std::string format(const char *pattern, double value)
{
    char text[64];
    std::snprintf(text, sizeof text, pattern, value);
    return text;
}

std::string time_text(double seconds)
{
    const struct {
        double unit;
        const char *name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
    for (const auto &[unit, name] : units) {
        if (seconds >= unit) {
            return format("%.3g ", seconds / unit) + name;
        }
    }
    return format("%.3g ns", seconds / 1e-9);
}

std::string ratio_text(const std::map<std::string, double> &ratios, const std::string &name)
{
    const auto found = ratios.find(name);
    return found == ratios.end() ? "" : format("%.3gx", found->second);
}

// "tokens:16/width:7168/sources:9" is "16 x 7168 x 9"; other words stay.
std::string short_shape(const std::string &shape)
{
    std::string text, word;
    std::size_t at = 0;
    while (at <= shape.size()) {
        const std::size_t end = std::min(shape.find('/', at), shape.size());
        word = shape.substr(at, end - at);
        for (const char *known : {"tokens:", "width:", "sources:"}) {
            if (word.rfind(known, 0) == 0) {
                word = word.substr(word.find(':') + 1);
            }
        }
        text += (text.empty() ? "" : " x ") + word;
        at = end + 1;
    }
    return text;
}

// A peer that only one level compares with has its own column without that level's name.
std::string column_of(const std::string &peer, const std::string &level)
{
    return peer == "autovec-" + level ? "autovec" : peer.rfind("autovec-", 0) == 0 ? "" : peer;
}

std::vector<std::string> peer_columns(const Results &results)
{
    std::set<std::string> names;
    for (std::size_t i = 0; i < results.rows.size(); i++) {
        for (const auto &[peer, ratio] : results.derived[i].ratios) {
            names.insert(column_of(peer, results.rows[i].row->contender_name));
        }
    }
    names.erase("");
    names.erase("scalar");
    std::vector<std::string> columns = {"scalar"};
    columns.insert(columns.end(), names.begin(), names.end());
    return columns;
}

void print_cells(const std::vector<Cells> &lines)
{
    std::vector<std::size_t> widths(lines.front().size(), 0);
    for (const Cells &cells : lines) {
        for (std::size_t i = 0; i < cells.size(); i++) {
            widths[i] = std::max(widths[i], cells[i].size());
        }
    }
    for (const Cells &cells : lines) {
        std::string line;
        for (std::size_t i = 0; i < cells.size(); i++) {
            const std::string space(widths[i] - cells[i].size(), ' ');
            // Words to the left, numbers to the right.
            line += (i < 5 ? cells[i] + space : space + cells[i]) + "  ";
        }
        line.erase(line.find_last_not_of(' ') + 1);
        std::printf("%s\n", line.c_str());
    }
}

Cells cells_of(const Suite &suite, const Measured &measured, const Derived &derived,
               const std::vector<std::string> &peers)
{
    const Row &row = *measured.row;
    Cells cells = {row.kernel, row.dtype, row.contender_name, short_shape(row.shape),
                   suite.machine.regime(row.working_set)};
    cells.push_back(time_text(measured.median));
    cells.push_back(row.bytes() > 0 ? format("%.1f", derived.bytes_per_second / 1e9) : "");
    cells.push_back(derived.roof_fraction > 0 ? format("%.2f", derived.roof_fraction) : "");
    const bool bound = derived.arithmetic_bytes_per_second > 0 &&
                       derived.arithmetic_bytes_per_second < derived.roof_bytes_per_second;
    cells.push_back(bound ? format("%.2f", derived.limit_fraction) : "");
    for (const std::string &peer : peers) {
        cells.push_back(
            ratio_text(derived.ratios, peer == "autovec" ? "autovec-" + row.contender_name : peer));
    }
    return cells;
}

// One line per shape: its plain reads and copies, sequential and in streams.
void print_roofs(const Suite &suite, const Results &results)
{
    const std::vector<std::string> kernels = {"roof_read", "roof_read_streams", "roof_copy",
                                              "roof_copy_streams"};
    std::vector<Cells> lines = {{"roofs in GB/s", "dtype", "level", "shape", "regime", "read",
                                 "in streams", "copy", "in streams"}};
    std::map<std::string, std::size_t> line_of;
    for (std::size_t i = 0; i < results.rows.size(); i++) {
        const Row &row = *results.rows[i].row;
        const auto kernel = std::find(kernels.begin(), kernels.end(), row.kernel);
        if (kernel == kernels.end() || !row.in_table) {
            continue;
        }
        const auto [at, is_new] = line_of.emplace(row.dtype + row.shape, lines.size());
        if (is_new) {
            lines.push_back({"", row.dtype, row.contender_name, short_shape(row.shape),
                             suite.machine.regime(row.working_set), "", "", "", ""});
        }
        lines[at->second][5 + static_cast<std::size_t>(kernel - kernels.begin())] =
            format("%.1f", results.derived[i].bytes_per_second / 1e9);
    }
    if (lines.size() > 1) {
        print_cells(lines);
        std::printf("\n");
    }
}

void print_head(const Suite &suite)
{
    const Machine &machine = suite.machine;
    std::printf("attnres %s on %s, %zu cores, core %d; level %s: %s\n", attnres_version(),
                machine.cpu.c_str(), machine.cores, machine.core,
                suite.contenders.best().name.c_str(), attnres_level_reason());
    for (const Absent &absent : suite.contenders.absent) {
        std::printf("absent: %s (%s)\n", absent.name.c_str(), absent.why.c_str());
    }
    for (const std::string &skipped : suite.skipped()) {
        std::printf("skipped: %s\n", skipped.c_str());
    }
    std::printf("\n");
}

void print_noise(const Results &results)
{
    if (results.noise_known) {
        std::printf("A/A noise %.1f %%", 100 * results.noise);
    } else {
        std::printf("A/A noise not measured");
    }
    std::printf(", %.0f %% of the core's time was ours", 100 * results.cpu_share);
    std::printf("%s\n", results.noisy ? ". NOISY: do not compare these numbers" : "");
}

} // namespace

void print_table(const Suite &suite, const Results &results)
{
    const std::vector<std::string> peers = peer_columns(results);
    std::vector<Cells> lines = {
        {"kernel", "dtype", "level", "shape", "regime", "time", "GB/s", "of roof", "of arith."}};
    for (const std::string &peer : peers) {
        lines.front().push_back("vs " + peer);
    }
    for (std::size_t i = 0; i < results.rows.size(); i++) {
        const Row &row = *results.rows[i].row;
        if (row.contender != nullptr && row.contender->ours && row.in_table &&
            row.kernel.rfind("aa_", 0) != 0) {
            lines.push_back(cells_of(suite, results.rows[i], results.derived[i], peers));
        }
    }
    print_head(suite);
    print_roofs(suite, results);
    print_cells(lines);
    std::printf("\n");
    print_noise(results);
}

} // namespace bench
