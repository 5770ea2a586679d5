// attnres-bench: measures the library against the machine's roofs, its own levels and its peers.
//
// Exit 0: all is well. 1: the numbers are bad (slower than the base, a level slower than the one
// below, a rate that cannot be). 2: the program could not do what was asked.
#include "compare.hpp"
#include "context.hpp"
#include "fit.hpp"
#include "levels.hpp"
#include "options.hpp"
#include "results.hpp"
#include "rows.hpp"
#include "table.hpp"

#include <cstdio>
#include <exception>
#include <sstream>

#include <unistd.h>

namespace bench
{
namespace
{

// Now rather than after minutes of measuring.
void require_writable(const std::string &path)
{
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (!path.empty() && access(directory.c_str(), W_OK) != 0) {
        throw std::runtime_error("cannot write to " + directory);
    }
}

void add_rows(Suite &suite, const Options &options)
{
    if (options.smoke) {
        add_smoke_rows(suite);
        return;
    }
    add_default_rows(suite);
    if (options.full) {
        add_full_rows(suite);
    }
    if (suite.rows().empty()) {
        throw std::invalid_argument("no row matches '" + options.filter + "'");
    }
}

bool credible(const Results &results)
{
    for (const std::string &name : results.incredible) {
        std::fprintf(stderr,
                     "attnres: %s is more than 1.1 times as fast as a plain read of its bytes\n",
                     name.c_str());
    }
    return results.incredible.empty();
}

int measure_and_report(Suite &suite, const Options &options)
{
    Conditions conditions;
    conditions.measure = options.measure;
    conditions.huge_pages = options.huge_pages;
    conditions.emulated = options.emulated;
    conditions.smoke = options.smoke;
    conditions.loop_seconds = empty_loop_seconds();
    conditions.mhz_before = measured_mhz();
    const Results results = evaluate(measure_all(suite, options.measure));
    conditions.mhz_after = measured_mhz();

    const bool meaningless = options.smoke || options.emulated;
    const std::vector<Fit> fits = fit_sweeps(suite, results);
    describe_run(suite, results, conditions);
    describe_fits(fits);
    print_table(suite, results);
    print_fits(fits);
    if (!meaningless && !credible(results)) {
        return 1;
    }
    if (!options.out.empty()) {
        write_json(options.out, results);
    }
    if (options.base.empty()) {
        return 0;
    }
    std::stringstream stream;
    write_json(stream, results);
    return compare(read_recorded(options.base), read_recorded(stream, "this run")) > 0 ? 1 : 0;
}

int measure(const Options &options)
{
    require_release_build();
    require_writable(options.out);
    const Machine machine = look_at_machine(options.core);
    const Contenders contenders = find_contenders();
    Memory memory(options.huge_pages);
    if (options.levels) {
        return check_levels(contenders, memory) > 0 ? 1 : 0;
    }
    Suite suite(machine, contenders, memory, options.filter);
    add_rows(suite, options);
    if (options.list) {
        for (const auto &row : suite.rows()) {
            std::printf("%s\n", row->name().c_str());
        }
        return 0;
    }
    return measure_and_report(suite, options);
}

int run(const Options &options)
{
    if (options.help) {
        std::printf("%s", usage);
        return 0;
    }
    if (!options.other.empty()) {
        return compare(read_recorded(options.base), read_recorded(options.other)) > 0 ? 1 : 0;
    }
    if (!options.base.empty()) {
        read_recorded(options.base); // an error now rather than after the measurement
    }
    return measure(options);
}

} // namespace
} // namespace bench

int main(int count, char **arguments)
{
    try {
        return bench::run(bench::parse_options(count, arguments));
    } catch (const std::exception &error) {
        std::fprintf(stderr, "attnres: %s\n", error.what());
        return 2;
    }
}
