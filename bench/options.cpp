#include "options.hpp"

#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

namespace bench
{

const char *const usage =
    "usage: attnres-bench [OPTION]...\n"
    "  --out FILE            write Google Benchmark's JSON\n"
    "  --full                all rows: sweeps, threads, alignments, hot and cold\n"
    "  --filter REGEX        only rows whose name matches (-REGEX: does not); roofs they need run "
    "too\n"
    "  --list                print the names of the rows and end\n"
    "  --levels              check that no level is slower than the one below; nothing else\n"
    "  --compare BASE.json   compare with an earlier run: exit 1 if a row is slower\n"
    "  --compare BASE.json NEW.json   compare two files, measure nothing\n"
    "  --repetitions N       at least 9, the default\n"
    "  --min-time SECONDS    of each repetition; 0.05\n"
    "  --core N              pin to this core instead of the one it starts on\n"
    "  --pages small|huge    ask the system for huge pages, or leave it to the system (small)\n"
    "  --smoke               a few tiny rows once, to see that everything runs\n"
    "  --emulated            note in the JSON that timings are meaningless\n";

namespace
{

double positive(const std::string &option, const std::string &text)
{
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 0) || value > 1e6) {
        throw std::invalid_argument(option + " needs a number, not '" + text + "'");
    }
    return value;
}

int whole(const std::string &option, const std::string &text)
{
    const double value = positive(option, text);
    if (value != static_cast<double>(static_cast<int>(value))) {
        throw std::invalid_argument(option + " needs a whole number, not '" + text + "'");
    }
    return static_cast<int>(value);
}

// Words still to be read. "--option=value" counts as two.
class Words
{
  public:
    Words(int count, char **arguments)
    {
        for (int i = 1; i < count; i++) {
            const std::string word = arguments[i];
            const std::size_t equal = word.rfind("--", 0) == 0 ? word.find('=') : std::string::npos;
            words_.push_back(word.substr(0, equal));
            if (equal != std::string::npos) {
                words_.push_back(word.substr(equal + 1));
            }
        }
    }
    bool more() const
    {
        return at_ < words_.size();
    }
    bool more_values() const
    {
        return more() && words_[at_].rfind("--", 0) != 0;
    }
    std::string next()
    {
        return words_[at_++];
    }
    std::string value_of(const std::string &option)
    {
        if (!more()) {
            throw std::invalid_argument(option + " needs a value");
        }
        return next();
    }

  private:
    std::vector<std::string> words_;
    std::size_t at_ = 0;
};

bool is_huge(const std::string &text)
{
    if (text != "huge" && text != "small") {
        throw std::invalid_argument("--pages is small or huge, not '" + text + "'");
    }
    return text == "huge";
}

void check(const Options &options)
{
    if (options.measure.repetitions < 9 && !options.smoke) {
        throw std::invalid_argument("medians of fewer than 9 repetitions are not reliable");
    }
    if (options.smoke && options.full) {
        throw std::invalid_argument("--smoke and --full exclude each other");
    }
    if (options.levels && (!options.out.empty() || !options.base.empty())) {
        throw std::invalid_argument("--levels writes no file and compares with none");
    }
}

} // namespace

Options parse_options(int count, char **arguments)
{
    Options options;
    Words words(count, arguments);
    const std::map<std::string, std::function<void(const std::string &)>> known = {
        {"--help", [&](const auto &) { options.help = true; }},
        {"--list", [&](const auto &) { options.list = true; }},
        {"--full", [&](const auto &) { options.full = true; }},
        {"--levels", [&](const auto &) { options.levels = true; }},
        {"--smoke",
         [&](const auto &) {
             options.smoke = true;
             options.measure = {1, 0.001};
         }},
        {"--emulated", [&](const auto &) { options.emulated = true; }},
        {"--out", [&](const auto &name) { options.out = words.value_of(name); }},
        {"--filter", [&](const auto &name) { options.filter = words.value_of(name); }},
        {"--repetitions",
         [&](const auto &name) {
             options.measure.repetitions = whole(name, words.value_of(name));
         }},
        {"--min-time",
         [&](const auto &name) {
             options.measure.min_seconds = positive(name, words.value_of(name));
         }},
        {"--core", [&](const auto &name) { options.core = whole(name, words.value_of(name)); }},
        {"--pages", [&](const auto &name) { options.huge_pages = is_huge(words.value_of(name)); }},
        {"--compare",
         [&](const auto &name) {
             options.base = words.value_of(name);
             options.other = words.more_values() ? words.next() : "";
         }},
    };
    while (words.more()) {
        const std::string word = words.next();
        const auto found = known.find(word);
        if (found == known.end()) {
            throw std::invalid_argument("unknown option '" + word + "'; see --help");
        }
        found->second(word);
    }
    check(options);
    return options;
}

} // namespace bench
