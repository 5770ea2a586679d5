// Many queries over one bank: in one sweep of attnres_accumulate, and as as many single reads.
#include "roofs.hpp"
#include "rows.hpp"

namespace bench
{
namespace
{

constexpr std::size_t query_count = 24;

struct QueriesCall {
    attnres_shape shape;
    std::vector<attnres_rows> sources;
    std::vector<const void *> queries;
    std::vector<attnres_state> states;
    std::vector<double> maxima_and_sums;
    attnres_rows_out result;
    attnres_accumulate_args args;
};

std::shared_ptr<QueriesCall> make_call(Memory &memory, const ReadShape &shape)
{
    const attnres_dtype accumulator = attnres_dtype_accumulator(shape.dtype);
    const std::size_t set_bytes = shape.tokens * shape.width * attnres_dtype_size(shape.dtype);
    const std::size_t mix_bytes = shape.tokens * shape.width * attnres_dtype_size(accumulator);
    const auto *query = static_cast<const std::byte *>(memory.queries(accumulator));
    auto call = std::make_shared<QueriesCall>();

    call->shape = {shape.dtype, shape.tokens, shape.width};
    call->sources = place(memory.inputs(shape.dtype), shape.sources, set_bytes);
    call->maxima_and_sums.resize(2 * query_count * shape.tokens);
    const auto mixes = place_out(memory.outputs(), query_count, mix_bytes, output_layout({}));
    for (std::size_t i = 0; i < query_count; i++) {
        double *numbers = &call->maxima_and_sums[2 * i * shape.tokens];
        call->queries.push_back(query + i * shape.width * attnres_dtype_size(accumulator));
        call->states.push_back({numbers, numbers + shape.tokens, mixes[i].data, 0});
    }
    call->result = mixes[0];
    call->args = {};
    call->args.sources = call->sources.data();
    call->args.source_count = shape.sources;
    call->args.queries = call->queries.data();
    call->args.query_count = query_count;
    call->args.eps = 1e-5;
    call->args.states = call->states.data();
    return call;
}

void run_sweep(const QueriesCall &call)
{
    for (const attnres_state &state : call.states) {
        require_ok(attnres_state_clear(&call.shape, &state), "state_clear");
    }
    require_ok(attnres_accumulate(&call.shape, &call.args), "accumulate");
}

void run_reads(const QueriesCall &call)
{
    for (const void *query : call.queries) {
        attnres_read_args args = {};
        args.sources = call.sources.data();
        args.source_count = call.sources.size();
        args.query = query;
        args.eps = call.args.eps;
        args.retrieved = call.result;
        require_ok(attnres_read(&call.shape, &args), "read");
    }
}

} // namespace

void add_queries(Suite &suite, const Contender &contender, const ReadShape &shape, bool sweep)
{
    if (!contender.ours) {
        return;
    }
    const attnres_dtype accumulator = attnres_dtype_accumulator(shape.dtype);
    const std::size_t mix_bytes = shape.tokens * shape.width * attnres_dtype_size(accumulator);
    Traffic traffic;
    traffic.dtype = shape.dtype;
    traffic.shape = shape_text(shape) + "/queries:24";
    traffic.count = shape.sources;
    traffic.bytes = shape.tokens * shape.width * attnres_dtype_size(shape.dtype);
    traffic.copied = {0};
    Row row;
    row.kernel = sweep ? "queries_sweep" : "queries_apart";
    row.contender = &contender;
    row.contender_name = contender.name;
    set_traffic(row, traffic, Against::read);
    // The least there is to do: the bank read once and all folds written, or that many reads.
    row.bytes_read *= sweep ? 1 : static_cast<double>(query_count);
    row.bytes_written = static_cast<double>(query_count * (sweep ? mix_bytes : traffic.bytes));
    row.operations =
        3.0 * static_cast<double>(query_count * shape.tokens * shape.width * shape.sources);
    row.query_elements = query_count * shape.width;
    row.output_bytes = placed_bytes(query_count, mix_bytes, output_layout({}));
    Memory &memory = suite.memory;
    row.make = [&memory, shape, sweep](const Contender *) {
        const auto call = make_call(memory, shape);
        Task task;
        task.run = [call, sweep] { sweep ? run_sweep(*call) : run_reads(*call); };
        return task;
    };
    const auto roofs = roofs_of(suite, row, traffic);
    suite.add(std::move(row), roofs);
}

} // namespace bench
