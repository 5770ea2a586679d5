#include "roofs.hpp"
#include "rows.hpp"
#include "threads.hpp"

#include <numeric>
#include <random>
#include <stdexcept>

namespace bench
{
namespace
{

struct ReadCall {
    attnres_shape shape;
    std::vector<attnres_rows> sources;
    attnres_read_args args;
};

std::size_t set_bytes(const ReadShape &shape)
{
    return shape.tokens * shape.width * attnres_dtype_size(shape.dtype);
}

Traffic read_traffic(const ReadShape &shape)
{
    Traffic traffic;
    traffic.dtype = shape.dtype;
    traffic.shape = shape_text(shape);
    traffic.count = shape.sources;
    traffic.bytes = set_bytes(shape);
    traffic.layout = shape.layout;
    traffic.copied = {shape.sources - 1};
    traffic.threads = shape.threads;
    traffic.tokens = shape.tokens;
    return traffic;
}

std::shared_ptr<ReadCall> make_call(Memory &memory, const ReadShape &shape)
{
    auto call = std::make_shared<ReadCall>();
    call->shape = {shape.dtype, shape.tokens, shape.width};
    call->sources =
        place(memory.inputs(shape.dtype), shape.sources, set_bytes(shape), shape.layout);
    call->args = {};
    call->args.sources = call->sources.data();
    call->args.source_count = shape.sources;
    call->args.query = memory.queries(attnres_dtype_accumulator(shape.dtype));
    call->args.eps = 1e-5;
    call->args.retrieved =
        place_out(memory.outputs(), 1, set_bytes(shape), output_layout(shape.layout))[0];
    return call;
}

// The rows from token t on of every row set, as a call of its own.
void move_to_token(ReadCall &call, const ReadCall &whole, std::size_t t)
{
    const std::size_t bytes = t * call.shape.width * attnres_dtype_size(call.shape.dtype);
    for (std::size_t s = 0; s < call.sources.size(); s++) {
        call.sources[s].data = static_cast<const std::byte *>(whole.sources[s].data) + bytes;
    }
    call.args.retrieved.data = static_cast<std::byte *>(whole.args.retrieved.data) + bytes;
}

std::shared_ptr<ReadCall> part_of(const std::shared_ptr<ReadCall> &whole)
{
    auto part = std::make_shared<ReadCall>(*whole);
    part->args.sources = part->sources.data();
    return part;
}

Task read_task(const Contender &contender, const std::shared_ptr<ReadCall> &call)
{
    const auto read = contender.api.read;
    Task task;
    task.run = [call, read] { require_ok(read(&call->shape, &call->args), "read"); };
    task.results = {
        {call->shape.dtype, call->args.retrieved.data, call->shape.tokens * call->shape.width}};
    return task;
}

Task make_read(Suite &suite, const Contender &contender, const ReadShape &shape)
{
    const auto whole = make_call(suite.memory, shape);
    if (shape.threads == 0) {
        return read_task(contender, whole);
    }
    std::vector<Task> parts;
    for (int i = 0; i < shape.threads; i++) {
        const auto part = part_of(whole);
        const auto [begin, end] = share(shape.tokens, i, shape.threads);
        move_to_token(*part, *whole, begin);
        part->shape.tokens = end - begin;
        parts.push_back(read_task(contender, part));
    }
    return in_threads(suite.machine, parts);
}

Task make_cold(Memory &memory, const Contender &contender, const ReadShape &shape)
{
    const auto whole = make_call(memory, shape);
    const auto call = part_of(whole);
    call->shape.tokens = 1;
    auto order = std::make_shared<std::vector<std::size_t>>(shape.tokens);
    std::iota(order->begin(), order->end(), std::size_t{0});
    std::shuffle(order->begin(), order->end(), std::mt19937(1));
    const auto next = std::make_shared<std::size_t>(0);
    const auto read = contender.api.read;
    Task task;
    task.run = [=] {
        move_to_token(*call, *whole, (*order)[*next]);
        *next = (*next + 1) % order->size();
        require_ok(read(&call->shape, &call->args), "read");
    };
    return task;
}

double read_operations(const ReadShape &shape)
{
    return 3.0 * static_cast<double>(shape.tokens * shape.width * shape.sources);
}

Row read_row(const Contender &contender, const ReadShape &shape, const std::string &kernel)
{
    Row row;
    row.kernel = kernel;
    row.contender = &contender;
    row.contender_name = contender.name;
    set_traffic(row, read_traffic(shape), Against::read);
    row.operations = read_operations(shape);
    row.query_elements = shape.width;
    row.working_set += shape.width * attnres_dtype_size(attnres_dtype_accumulator(shape.dtype));
    if (!shape.sweep.empty()) {
        row.sweeps = {shape.sweep};
        row.in_table = false;
    }
    return row;
}

} // namespace

std::string shape_text(const ReadShape &shape)
{
    return "tokens:" + std::to_string(shape.tokens) + "/width:" + std::to_string(shape.width) +
           "/sources:" + std::to_string(shape.sources) + shape.extra;
}

void require_ok(attnres_status status, const char *call)
{
    if (status != ATTNRES_OK) {
        throw std::runtime_error(std::string(call) + ": " + attnres_status_string(status));
    }
}

void add_read(Suite &suite, const Contender &contender, const ReadShape &shape,
              const std::string &kernel)
{
    if (contender.api.read == nullptr) {
        return;
    }
    Row row = read_row(contender, shape, kernel);
    row.make = [&suite, shape](const Contender *who) { return make_read(suite, *who, shape); };
    const auto roofs = roofs_of(suite, row, read_traffic(shape));
    suite.add(std::move(row), roofs);
}

void add_read_cold(Suite &suite, const Contender &contender, const ReadShape &shape)
{
    if (contender.api.read == nullptr) {
        return;
    }
    Row row = read_row(contender, shape, "read_cold");
    Memory &memory = suite.memory;
    row.make = [&memory, shape](const Contender *who) { return make_cold(memory, *who, shape); };
    const auto roofs = roofs_of(suite, row, read_traffic(shape));
    // One call reads one token.
    row.bytes_read /= static_cast<double>(shape.tokens);
    row.bytes_written /= static_cast<double>(shape.tokens);
    row.operations /= static_cast<double>(shape.tokens);
    suite.add(std::move(row), roofs);
}

} // namespace bench
