#include "roofs.hpp"
#include "rows.hpp"

extern "C" {
#include "kernels.h"
}

namespace bench
{
namespace
{

// The rows of one token, and what the kernels want besides.
struct KernelCall {
    std::size_t tokens, width, row_bytes;
    int from_memory; // what the library would tell the score kernel
    std::vector<attnres_rows> sets;
    std::vector<const void *> rows;
    std::byte *out;
    const void *query;
    std::vector<double> squares, dots; // [sources]
    std::vector<float> steps_f32;      // [sources] pairs {alpha, p}
    std::vector<double> steps_f64;
    struct attnres_mix mix;

    void move_to_token(std::size_t t)
    {
        for (std::size_t s = 0; s < rows.size(); s++) {
            rows[s] = static_cast<const std::byte *>(sets[s].data) + t * row_bytes;
        }
    }
};

Traffic kernel_traffic(const ReadShape &shape, bool writing)
{
    Traffic traffic;
    traffic.dtype = shape.dtype;
    traffic.shape = shape_text(shape);
    traffic.count = shape.sources;
    traffic.bytes = shape.tokens * shape.width * attnres_dtype_size(shape.dtype);
    if (writing) {
        traffic.copied = {shape.sources - 1};
    }
    return traffic;
}

std::shared_ptr<KernelCall> make_call(Memory &memory, const ReadShape &shape)
{
    auto call = std::make_shared<KernelCall>();
    call->tokens = shape.tokens;
    call->from_memory = shape.tokens > 64;
    call->width = shape.width;
    call->row_bytes = shape.width * attnres_dtype_size(shape.dtype);
    call->sets = place(memory.inputs(shape.dtype), shape.sources, shape.tokens * call->row_bytes);
    call->rows.resize(shape.sources);
    call->out = static_cast<std::byte *>(
        place_out(memory.outputs(), 1, shape.tokens * call->row_bytes, output_layout({}))[0].data);
    call->query = memory.queries(attnres_dtype_accumulator(shape.dtype));
    call->squares.resize(shape.sources);
    call->dots.resize(shape.sources);
    for (std::size_t s = 0; s < shape.sources; s++) {
        const double p = 1.0 / static_cast<double>(s + 1);
        call->steps_f32.insert(call->steps_f32.end(), {1.0F, static_cast<float>(p)});
        call->steps_f64.insert(call->steps_f64.end(), {1.0, p});
    }
    call->mix = {};
    call->mix.rows = call->rows.data();
    call->mix.steps = shape.dtype == ATTNRES_F64
                          ? static_cast<const void *>(call->steps_f64.data())
                          : static_cast<const void *>(call->steps_f32.data());
    call->mix.count = shape.sources;
    call->mix.factor = 0.5;
    return call;
}

Task make_score(Memory &memory, const attnres_kernels *kernels, const ReadShape &shape)
{
    const auto call = make_call(memory, shape);
    Task task;
    task.run = [call, kernels] {
        for (std::size_t t = 0; t < call->tokens; t++) {
            call->move_to_token(t);
            kernels->score(call->rows.data(), call->rows.size(), call->query, call->width,
                           call->from_memory, call->squares.data(), call->dots.data());
        }
    };
    task.results = {{ATTNRES_F64, call->squares.data(), shape.sources},
                    {ATTNRES_F64, call->dots.data(), shape.sources}};
    return task;
}

Task make_mix(Memory &memory, const attnres_kernels *kernels, const ReadShape &shape)
{
    const auto call = make_call(memory, shape);
    Task task;
    task.run = [call, kernels] {
        for (std::size_t t = 0; t < call->tokens; t++) {
            call->move_to_token(t);
            call->mix.out = call->out + t * call->row_bytes;
            kernels->mix(&call->mix, call->width);
        }
    };
    task.results = {{shape.dtype, call->out, shape.tokens * shape.width}};
    return task;
}

Task make_normalize(Memory &memory, const attnres_kernels *kernels, const ReadShape &shape)
{
    const auto call = make_call(memory, shape);
    Task task;
    task.run = [call, kernels] {
        for (std::size_t t = 0; t < call->tokens; t++) {
            call->move_to_token(t);
            // The query serves as a gain.
            kernels->normalize(call->rows[0], 16.0, call->query, call->width,
                               call->out + t * call->row_bytes);
        }
    };
    task.results = {{shape.dtype, call->out, shape.tokens * shape.width}};
    return task;
}

using MakeKernel = Task (*)(Memory &, const attnres_kernels *, const ReadShape &);

struct KernelFamily {
    const char *name;
    MakeKernel make;
    double operations; // per element of a source
    bool writing;
    Against against;
};

void add_kernel(Suite &suite, const Contender &contender, const ReadShape &shape,
                const KernelFamily &family)
{
    const auto kernels = contender.api.kernels;
    if (kernels == nullptr) {
        return;
    }
    const Traffic traffic = kernel_traffic(shape, family.writing);
    Row row;
    row.kernel = family.name;
    row.contender = &contender;
    row.contender_name = contender.name;
    set_traffic(row, traffic, family.against);
    row.operations =
        family.operations * static_cast<double>(shape.tokens * shape.width * shape.sources);
    row.query_elements = shape.width;
    Memory &memory = suite.memory;
    row.make = [&memory, shape, make = family.make](const Contender *who) {
        who->activate(); // the table is that of the level that is set
        return make(memory, who->api.kernels(shape.dtype), shape);
    };
    const auto roofs = roofs_of(suite, row, traffic);
    suite.add(std::move(row), roofs);
}

} // namespace

void add_score(Suite &suite, const Contender &contender, const ReadShape &shape)
{
    add_kernel(suite, contender, shape, {"score", make_score, 2, false, Against::read});
}

void add_mix(Suite &suite, const Contender &contender, const ReadShape &shape)
{
    add_kernel(suite, contender, shape, {"mix", make_mix, 1, true, Against::read});
}

void add_normalize(Suite &suite, const Contender &contender, const ReadShape &shape)
{
    add_kernel(suite, contender, shape, {"normalize", make_normalize, 2, true, Against::copy});
}

} // namespace bench
