// The whole call of a runtime: a delta added to the prefix in place, the read, the push of the
// prefix into a bank row, the norm of the result. In one call, with those steps apart, and bare.
#include "roofs.hpp"
#include "rows.hpp"

namespace bench
{
namespace
{

struct FusedCall {
    attnres_shape shape;
    std::vector<attnres_rows> sources; // the bank, then the prefix, then the delta
    attnres_rows_out prefix, push, result;
    attnres_read_args args;
};

std::size_t set_bytes(const ReadShape &shape)
{
    return shape.tokens * shape.width * attnres_dtype_size(shape.dtype);
}

std::shared_ptr<FusedCall> make_call(Memory &memory, const ReadShape &shape)
{
    auto call = std::make_shared<FusedCall>();
    const auto accumulator = attnres_dtype_accumulator(shape.dtype);
    call->shape = {shape.dtype, shape.tokens, shape.width};
    call->sources = place(memory.inputs(shape.dtype), shape.sources + 1, set_bytes(shape));
    const auto outputs = place_out(memory.outputs(), 3, set_bytes(shape), output_layout({}));
    call->prefix = outputs[0];
    call->push = outputs[1];
    call->result = outputs[2];
    attnres_read_args &args = call->args;
    args = {};
    args.sources = call->sources.data();
    args.source_count = shape.sources - 1;
    args.prefix = call->sources[shape.sources - 1];
    args.deltas = &call->sources[shape.sources];
    args.delta_count = 1;
    args.prefix_out = call->prefix;
    args.push = call->push;
    args.query = memory.queries(accumulator);
    args.eps = 1e-5;
    args.normed = call->result;
    args.norm_gain = args.query;
    args.norm_eps = 1e-5;
    return call;
}

// The same with one call for each step: add, read, push, norm (a read of one source).
void run_apart(const FusedCall &call)
{
    const attnres_shape *shape = &call.shape;
    const attnres_rows summands[2] = {call.args.prefix, call.args.deltas[0]};
    attnres_block_sum_args add = {};
    add.outputs = summands;
    add.layers = add.block_size = 2;
    add.sums = &call.prefix;
    add.sum_count = 1;
    require_ok(attnres_block_sum(shape, &add), "block_sum");

    attnres_read_args read = call.args;
    const attnres_rows prefix = {call.prefix.data, call.prefix.stride};
    read.prefix = prefix;
    read.deltas = nullptr;
    read.delta_count = 0;
    read.prefix_out = read.push = read.normed = {};
    read.retrieved = call.result;
    require_ok(attnres_read(shape, &read), "read");

    attnres_block_sum_args push = {};
    push.outputs = &prefix;
    push.layers = push.block_size = 1;
    push.sums = &call.push;
    push.sum_count = 1;
    require_ok(attnres_block_sum(shape, &push), "block_sum");

    const attnres_rows result = {call.result.data, call.result.stride};
    attnres_read_args norm = {};
    norm.sources = &result;
    norm.source_count = 1;
    norm.query = call.args.query;
    norm.normed = call.result;
    norm.norm_gain = call.args.norm_gain;
    norm.norm_eps = call.args.norm_eps;
    require_ok(attnres_read(shape, &norm), "read");
}

Task make_task(Memory &memory, const ReadShape &shape, Steps steps)
{
    const auto call = make_call(memory, shape);
    Task task;
    if (steps == Steps::bare) { // the same memory, for a fair ratio
        call->args.deltas = nullptr;
        call->args.delta_count = 0;
        call->args.prefix_out = call->args.push = call->args.normed = {};
        call->args.retrieved = call->result;
    }
    if (steps == Steps::apart) {
        task.run = [call] { run_apart(*call); };
    } else {
        task.run = [call] { require_ok(attnres_read(&call->shape, &call->args), "read"); };
    }
    task.results = {{shape.dtype, call->result.data, shape.tokens * shape.width}};
    return task;
}

const char *kernel_name(Steps steps)
{
    switch (steps) {
    case Steps::bare:
        return "fused_bare";
    case Steps::apart:
        return "fused_apart";
    default:
        return "fused";
    }
}

} // namespace

void add_fused(Suite &suite, const Contender &contender, const ReadShape &shape, Steps steps)
{
    if (!contender.ours) {
        return;
    }
    Traffic traffic;
    traffic.dtype = shape.dtype;
    traffic.shape = shape_text(shape);
    traffic.count = shape.sources + (steps == Steps::bare ? 0 : 1);
    traffic.bytes = set_bytes(shape);
    traffic.copied =
        steps == Steps::bare ? std::vector<std::size_t>{0} : std::vector<std::size_t>{0, 1, 2};
    Row row;
    row.kernel = kernel_name(steps);
    row.contender = &contender;
    row.contender_name = contender.name;
    set_traffic(row, traffic, Against::read);
    row.operations = 3.0 * static_cast<double>(shape.tokens * shape.width * shape.sources);
    row.query_elements = shape.width;
    Memory &memory = suite.memory;
    row.make = [&memory, shape, steps](const Contender *) {
        return make_task(memory, shape, steps);
    };
    // Room for all three forms, whichever of them are asked for.
    row.input_bytes = placed_bytes(shape.sources + 1, traffic.bytes);
    row.output_bytes = placed_bytes(3, traffic.bytes, output_layout({}));
    const auto roofs = roofs_of(suite, row, traffic);
    suite.add(std::move(row), roofs);
}

} // namespace bench
