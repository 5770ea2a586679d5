#include "roofs.hpp"
#include "rows.hpp"

namespace bench
{
namespace
{

constexpr std::size_t width = 7168, bank_rows = 8, sites = 186, source_rows = 1002;

// 24 reads each with 2, 3, ..., 8 sources, then 18 with 9.
std::size_t sources_of_site(std::size_t site)
{
    return 2 + site / 24;
}

struct K3Call {
    attnres_shape shape;
    std::vector<attnres_rows> rows; // the bank, then the prefix
    std::vector<attnres_read_args> reads;
};

std::shared_ptr<K3Call> make_call(Memory &memory, Queries queries)
{
    const std::size_t bytes = width * attnres_dtype_size(ATTNRES_BF16);
    const auto *query = static_cast<const float *>(memory.queries(ATTNRES_F32));
    auto call = std::make_shared<K3Call>();
    call->shape = {ATTNRES_BF16, 1, width};
    call->rows = place(memory.inputs(ATTNRES_BF16), bank_rows + 1, bytes);
    const attnres_rows_out out = place_out(memory.outputs(), 1, bytes, output_layout({}))[0];
    for (std::size_t site = 0; site < sites; site++) {
        attnres_read_args args = {};
        args.sources = call->rows.data();
        args.source_count = sources_of_site(site) - 1;
        args.prefix = call->rows.back();
        args.query = queries == Queries::own ? query + site * width : query;
        args.eps = 1e-5;
        args.retrieved = out;
        call->reads.push_back(args);
    }
    return call;
}

} // namespace

void add_k3_token(Suite &suite, const Contender &contender, Queries queries)
{
    if (contender.api.read == nullptr) {
        return;
    }
    // Held against the plain read of bank and prefix, which stay in the L2 cache.
    Traffic traffic;
    traffic.dtype = ATTNRES_BF16;
    traffic.shape = "tokens:1/width:7168/sources:9";
    traffic.count = bank_rows + 1;
    traffic.bytes = width * attnres_dtype_size(ATTNRES_BF16);
    traffic.copied = {bank_rows};

    Row row;
    row.kernel = queries == Queries::own ? "k3_token" : "k3_token_one_query";
    row.contender = &contender;
    row.contender_name = contender.name;
    set_traffic(row, traffic, Against::read);
    row.shape = "tokens:1/width:7168/reads:186/rows:1002";
    row.bytes_read = static_cast<double>(source_rows * traffic.bytes);
    row.bytes_written = static_cast<double>(sites * traffic.bytes);
    row.operations = 3.0 * static_cast<double>(source_rows * width);
    row.query_elements = width * (queries == Queries::own ? sites : 1);

    Memory &memory = suite.memory;
    row.make = [&memory, queries](const Contender *who) {
        const auto call = make_call(memory, queries);
        const auto read = who->api.read;
        Task task;
        task.run = [call, read] {
            for (const attnres_read_args &args : call->reads) {
                require_ok(read(&call->shape, &args), "read");
            }
        };
        task.results = {{ATTNRES_BF16, call->reads[0].retrieved.data, width}};
        return task;
    };
    const auto roofs = roofs_of(suite, row, traffic);
    suite.add(std::move(row), roofs);
}

} // namespace bench
