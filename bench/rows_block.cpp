#include "roofs.hpp"
#include "rows.hpp"

#include <algorithm>

namespace bench
{
namespace
{

std::size_t set_bytes(const BlockShape &shape)
{
    return shape.tokens * shape.width * attnres_dtype_size(shape.dtype);
}

std::string block_text(const BlockShape &shape)
{
    return "tokens:" + std::to_string(shape.tokens) + "/width:" + std::to_string(shape.width) +
           "/layers:" + std::to_string(shape.layers) + "/block:" + std::to_string(shape.block);
}

std::size_t sum_count(const BlockShape &shape)
{
    return attnres_source_count(shape.layers, shape.block) - 1;
}

// The last layer of each block is where its sum goes; with an embedding before the layers, that is
// where the retrieved rows go.
Traffic block_traffic(const BlockShape &shape, bool reading)
{
    Traffic traffic;
    traffic.dtype = shape.dtype;
    traffic.shape = block_text(shape) + (reading ? "/read" : "");
    traffic.count = shape.layers + (reading ? 1 : 0);
    traffic.bytes = set_bytes(shape);
    for (std::size_t block = 0; block < sum_count(shape); block++) {
        const std::size_t end = std::min(shape.layers, (block + 1) * shape.block);
        traffic.copied.push_back(end - (reading ? 0 : 1));
    }
    if (reading) {
        traffic.copied.push_back(0);
    }
    return traffic;
}

struct BlockCall {
    attnres_shape shape;
    std::vector<attnres_rows> inputs; // with the embedding first, if reading
    std::vector<attnres_rows_out> outputs;
    attnres_block_sum_args sum;
    attnres_block_read_args read;
};

std::shared_ptr<BlockCall> make_call(Memory &memory, const BlockShape &shape, bool reading)
{
    const Traffic traffic = block_traffic(shape, reading);
    auto call = std::make_shared<BlockCall>();
    call->shape = {shape.dtype, shape.tokens, shape.width};
    call->inputs = place(memory.inputs(shape.dtype), traffic.count, traffic.bytes);
    call->outputs =
        place_out(memory.outputs(), traffic.copied.size(), traffic.bytes, output_layout({}));
    return call;
}

std::vector<Result> results_of(const BlockCall &call)
{
    std::vector<Result> results;
    for (const attnres_rows_out &rows : call.outputs) {
        if (rows.data != nullptr) {
            results.push_back({call.shape.dtype, rows.data, call.shape.tokens * call.shape.width});
        }
    }
    return results;
}

Task make_sum(Memory &memory, const Contender &contender, const BlockShape &shape)
{
    const auto call = make_call(memory, shape, false);
    call->sum = {};
    call->sum.outputs = call->inputs.data();
    call->sum.layers = shape.layers;
    call->sum.block_size = shape.block;
    call->sum.sums = call->outputs.data();
    call->sum.sum_count = call->outputs.size();
    const auto block_sum = contender.api.block_sum;
    Task task;
    task.run = [call, block_sum] { require_ok(block_sum(&call->shape, &call->sum), "block_sum"); };
    task.results = results_of(*call);
    return task;
}

Task make_read(Memory &memory, const Contender &contender, const BlockShape &shape)
{
    const auto call = make_call(memory, shape, true);
    const std::vector<Result> results = results_of(*call);
    call->read = {};
    call->read.embedding = call->inputs[0];
    call->read.outputs = call->inputs.data() + 1;
    call->read.layers = shape.layers;
    call->read.block_size = shape.block;
    call->read.query = memory.queries(attnres_dtype_accumulator(shape.dtype));
    call->read.eps = 1e-5;
    call->read.retrieved = call->outputs.back();
    // Its place in the list is the embedding's, of which no copy is made.
    call->outputs.pop_back();
    call->outputs.insert(call->outputs.begin(), attnres_rows_out{nullptr, 0});
    call->read.sources = call->outputs.data();
    call->read.source_count = call->outputs.size();
    const auto block_read = contender.api.block_read;
    Task task;
    task.run = [call, block_read] {
        require_ok(block_read(&call->shape, &call->read), "block_read");
    };
    task.results = results;
    return task;
}

void add_block(Suite &suite, const Contender &contender, const BlockShape &shape, bool reading)
{
    const Traffic traffic = block_traffic(shape, reading);
    Row row;
    row.kernel = reading ? "block_read" : "block_sum";
    row.contender = &contender;
    row.contender_name = contender.name;
    set_traffic(row, traffic, Against::copy);
    row.shape = block_text(shape);
    const auto elements = static_cast<double>(shape.tokens * shape.width);
    row.operations = elements * static_cast<double>(shape.layers - sum_count(shape));
    if (reading) {
        row.operations += 3 * elements * static_cast<double>(sum_count(shape) + 1);
        row.query_elements = shape.width;
    }
    if (!shape.sweep.empty()) {
        row.sweeps = {shape.sweep};
        row.in_table = false;
    }
    Memory &memory = suite.memory;
    row.make = [&memory, shape, reading](const Contender *who) {
        return reading ? make_read(memory, *who, shape) : make_sum(memory, *who, shape);
    };
    const auto roofs = roofs_of(suite, row, traffic);
    suite.add(std::move(row), roofs);
}

} // namespace

void add_block_sum(Suite &suite, const Contender &contender, const BlockShape &shape)
{
    if (contender.api.block_sum != nullptr) {
        add_block(suite, contender, shape, false);
    }
}

void add_block_read(Suite &suite, const Contender &contender, const BlockShape &shape)
{
    if (contender.api.block_read != nullptr) {
        add_block(suite, contender, shape, true);
    }
}

} // namespace bench
