#include "row.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace bench
{

const char *dtype_name(attnres_dtype dtype)
{
    switch (dtype) {
    case ATTNRES_F32:
        return "f32";
    case ATTNRES_F64:
        return "f64";
    case ATTNRES_F16:
        return "f16";
    case ATTNRES_BF16:
        return "bf16";
    }
    return "unknown";
}

Suite::Suite(const Machine &the_machine, const Contenders &the_contenders, Memory &the_memory,
             const std::string &filter)
    : machine(the_machine), contenders(the_contenders), memory(the_memory)
{
    negative_ = !filter.empty() && filter[0] == '-';
    try {
        filter_ = std::regex(negative_ ? filter.substr(1) : filter, std::regex::extended);
    } catch (const std::regex_error &) {
        throw std::invalid_argument("'" + filter + "' is not a regular expression");
    }
}

const Row *Suite::find(const std::string &name) const
{
    for (const auto &row : rows_) {
        if (row->name() == name) {
            return row.get();
        }
    }
    return nullptr;
}

void Suite::insert(Row row)
{
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&row](const auto &other) {
        return other->name() == row.name();
    });
    if (found != rows_.end()) {
        Row &same = **found;
        same.in_table = same.in_table || row.in_table;
        same.sweeps.insert(same.sweeps.end(), row.sweeps.begin(), row.sweeps.end());
        return;
    }
    memory.reserve(row.type, row.input_bytes, row.output_bytes);
    if (row.query_elements > 0) {
        memory.reserve_queries(attnres_dtype_accumulator(row.type), row.query_elements);
    }
    rows_.push_back(std::make_unique<Row>(std::move(row)));
}

void Suite::add(Row row, std::vector<Row> roofs)
{
    if (std::regex_search(row.name(), filter_) == negative_) {
        return;
    }
    if (machine.memory_bytes > 0 && row.input_bytes + row.output_bytes > machine.memory_bytes / 4) {
        skipped_.push_back(row.name() + ": needs more than a quarter of the memory");
        return;
    }
    for (Row &roof : roofs) {
        roof.in_table = row.in_table;
        insert(std::move(roof));
    }
    insert(std::move(row));
}

} // namespace bench
