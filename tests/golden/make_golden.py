#!/usr/bin/env python3
"""Writes golden.safetensors: inputs of many shapes and what PyTorch makes of them.

Names, metadata and rules are described in README.md next to this file.
"""

import os

# The plainest code PyTorch has, so that the last bit does not depend on the machine.
os.environ["ATEN_CPU_CAPABILITY"] = "default"

import numpy
import torch

import safetensors_io as st
import seeded

torch.set_num_threads(1)

TORCH = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
HERE = os.path.dirname(os.path.abspath(__file__))


# ---- The function under test, as the task states it -----------------------------------------


def read_depth_sources(sources, pseudo_query, eps):
    """The read over [sources, batch, sequence, width], in the dtype it is given."""
    root_mean_square = torch.sqrt(sources.square().mean(dim=-1, keepdim=True) + eps)
    logits = ((sources / root_mean_square) * pseudo_query).sum(dim=-1)
    weights = torch.softmax(logits, dim=0)
    return (weights.unsqueeze(-1) * sources).sum(dim=0), weights


def sum_in_order(outputs):
    """Oldest first, in float32 (float64 for float64), rounded to the outputs' dtype at the end."""
    accumulator = torch.float64 if outputs.dtype == torch.float64 else torch.float32
    total = outputs[0].to(accumulator)
    for output in outputs[1:]:
        total = total + output.to(accumulator)
    return total.to(outputs.dtype)


def block_sources(embedding, previous_outputs, block_size):
    """The embedding, each completed block's sum, and the remainder's sum if there is one."""
    sources = [embedding]
    layers = previous_outputs.shape[0]
    completed = layers // block_size
    for block in range(completed):
        first = block * block_size
        sources.append(sum_in_order(previous_outputs[first : first + block_size]))
    if layers % block_size != 0:
        sources.append(sum_in_order(previous_outputs[completed * block_size :]))
    return torch.stack(sources)


# ---- The cases ------------------------------------------------------------------------------
#
# A case is a function of a seeded generator that returns (embedding, previous_outputs, query) as
# float64 arrays, which are then rounded to the case's dtype.


def given(embedding, previous_outputs, query):
    """Values written down; each list is reshaped to the array's full shape."""

    def make(_):
        emb = numpy.array(embedding, dtype=numpy.float64)
        outputs = numpy.array(previous_outputs, dtype=numpy.float64).reshape((-1,) + emb.shape)
        return emb, outputs, numpy.array(query, dtype=numpy.float64)

    return make


def ordinary(layers, batch, sequence, width, size=1.0, logit=1.5):
    """Random rows whose elements are about `size`, each layer and token with a size of its own.
    `logit` is about the standard deviation of the logits."""

    def make(random):
        shape = (batch, sequence, width)
        embedding = seeded.bell(random, shape) * size
        sizes = seeded.spread(random, (layers, batch, sequence, 1), 0.3, 1.7) * size
        outputs = seeded.bell(random, (layers,) + shape) * sizes
        query = seeded.bell(random, (width,)) * (logit / numpy.sqrt(width))
        return embedding, outputs, query

    return make


def changed(make, change):
    """The values of `make`, with the arrays changed in place by change(embedding, outputs)."""

    def make_changed(random):
        embedding, outputs, query = make(random)
        change(embedding, outputs)
        return embedding, outputs, query

    return make_changed


def zero_embedding(embedding, outputs):
    embedding[...] = 0.0


def zero_block(embedding, outputs):
    """Makes the first two outputs cancel out."""
    outputs[1] = -outputs[0]


def zero_token(embedding, outputs):
    """Only zero rows in the first token, ordinary ones in the others."""
    embedding[0, 0] = 0.0
    outputs[:, 0, 0] = 0.0


def equal_rows(embedding, outputs):
    outputs[...] = embedding


def mixed_sizes(embedding, outputs):
    """Neighbouring layers differ by a factor of 4096."""
    for layer in range(outputs.shape[0]):
        outputs[layer] *= 2.0 ** (12 * (layer % 4 - 1))


SEED_1 = given([[[1, 0]]], [], [1, 0.5])
SEED_2 = given([[[1, 0]]], [[0.5, -1], [2, 0.25], [-0.75, 1.5]], [1, 0.5])
SEED_3 = given(
    [[[1, 0], [0, 2]]],
    [[[0.5, -1], [1, 1]], [[2, 0.25], [-1, 3]], [[-0.75, 1.5], [0.5, 0]], [[1, 1], [-2, 0.125]]],
    [1, 0.5],
)
WORKED = given([[[5]]], [1, 2, 3, 4], [0.5])
SEVEN = given([[[5]]], [1, 2, 3, -4, 0.5, 2, -7], [0.5])
SIX = given([[[5]]], [1, 2, 3, -4, 0.5, 2], [0.5])

# (what it is about, dtype, block size, eps, maker)
CASES = [
    ("example 1: no earlier outputs", "F32", 2, 1e-6, SEED_1),
    ("example 2: 3 outputs, one block and a remainder", "F32", 2, 1e-6, SEED_2),
    ("example 3: 4 outputs, two blocks, no remainder", "F32", 2, 1e-6, SEED_3),
    ("worked example: sources 5, 6, 4", "F32", 3, 1e-6, WORKED),
    ("7 outputs in blocks of 3: four sources", "F64", 3, 1e-6, SEVEN),
    ("6 outputs in blocks of 3: three sources", "BF16", 3, 1e-6, SIX),
    # Counting layers and blocks.
    ("no earlier outputs", "F64", 4, 1e-6, ordinary(0, 1, 2, 31)),
    ("no earlier outputs", "F16", 1, 1e-6, ordinary(0, 2, 1, 7)),
    ("no earlier outputs", "BF16", 3, 1e-5, ordinary(0, 2, 3, 33)),
    ("one output, block size 1", "F16", 1, 1e-6, ordinary(1, 1, 3, 7)),
    ("one output, block size 4", "F32", 4, 1e-6, ordinary(1, 1, 2, 31)),
    ("block size above the number of outputs", "F64", 10, 1e-6, ordinary(3, 1, 2, 32)),
    ("block size above the number of outputs", "BF16", 7, 1e-5, ordinary(6, 2, 1, 2)),
    ("block size 1: the full read", "F32", 1, 1e-6, ordinary(9, 1, 2, 123)),
    ("block size 1: the full read", "F16", 1, 1e-6, ordinary(12, 1, 1, 33)),
    ("exact boundary", "BF16", 4, 1e-6, ordinary(12, 1, 2, 33)),
    ("exact boundary, one block", "F32", 5, 1e-5, ordinary(5, 1, 3, 3)),
    ("remainder", "F16", 4, 1e-6, ordinary(11, 1, 2, 31)),
    ("remainder of one", "F32", 3, 1e-6, ordinary(10, 1, 2, 33)),
    # Shapes.
    ("batch 3", "F32", 2, 1e-6, ordinary(5, 3, 4, 7)),
    ("batch 2", "F64", 2, 1e-5, ordinary(6, 2, 2, 3)),
    ("batch 4", "BF16", 3, 1e-6, ordinary(7, 4, 2, 32)),
    ("batch 2", "F16", 3, 1e-6, ordinary(8, 2, 3, 3)),
    ("width 1", "F16", 2, 1e-6, ordinary(5, 2, 2, 1)),
    ("width 2", "F64", 2, 1e-6, ordinary(5, 1, 2, 2)),
    ("width 123", "BF16", 3, 1e-5, ordinary(8, 1, 2, 123)),
    ("width 123", "F64", 3, 1e-6, ordinary(7, 1, 1, 123)),
    ("width 384", "F32", 5, 1e-6, ordinary(12, 1, 1, 384)),
    ("width 384, 54 outputs in blocks of 6", "BF16", 6, 1e-5, ordinary(54, 1, 1, 384)),
    ("width 384, 20 outputs in blocks of 8", "F16", 8, 1e-6, ordinary(20, 1, 1, 384)),
    ("width 1000", "BF16", 4, 1e-5, ordinary(10, 1, 1, 1000)),
    ("width 1000", "F32", 3, 1e-6, ordinary(4, 1, 1, 1000)),
    ("width 1000", "F64", 2, 1e-6, ordinary(3, 1, 1, 1000)),
    ("54 outputs in blocks of 1: 55 sources", "F32", 1, 1e-6, ordinary(54, 1, 1, 32)),
    ("53 outputs in blocks of 6", "F64", 6, 1e-6, ordinary(53, 1, 1, 31)),
    # Sizes. With eps = 0 a row's size does not matter, with eps it does.
    ("elements near 1e30: squares overflow float32", "F32", 2, 1e-6, ordinary(5, 1, 2, 33, 1e30)),
    ("elements near 1e30", "BF16", 2, 1e-6, ordinary(6, 1, 2, 123, 1e30)),
    ("elements near 5000: sums close to the largest", "F16", 3, 1e-6, ordinary(5, 1, 2, 31, 5e3)),
    ("elements near 1e120", "F64", 2, 1e-6, ordinary(5, 1, 2, 7, 1e120)),
    ("elements near 1e-25, no eps", "F32", 2, 0.0, ordinary(5, 1, 2, 33, 1e-25)),
    ("elements near 1e-25: eps makes the weights equal", "F32", 2, 1e-6,
     ordinary(5, 1, 2, 33, 1e-25)),
    ("subnormal elements near 1e-40, no eps", "F32", 2, 0.0, ordinary(5, 1, 2, 31, 1e-40)),
    ("elements near 1e-30, no eps", "BF16", 3, 0.0, ordinary(7, 1, 2, 32, 1e-30)),
    ("subnormal elements near 1e-5, no eps", "F16", 2, 0.0, ordinary(5, 1, 2, 33, 1e-5)),
    ("elements near 1e-120, no eps", "F64", 2, 0.0, ordinary(5, 1, 2, 7, 1e-120)),
    ("no eps", "BF16", 2, 0.0, ordinary(5, 1, 2, 31)),
    ("eps as large as the mean square", "F32", 2, 1e-6, ordinary(5, 1, 2, 32, 1e-3, 6.0)),
    ("eps as large as the mean square", "F16", 2, 1e-5, ordinary(5, 1, 2, 32, 3e-3, 6.0)),
    ("sources of very different sizes", "F32", 1, 1e-6,
     changed(ordinary(8, 1, 2, 123), mixed_sizes)),
    ("sources of very different sizes", "BF16", 2, 1e-5,
     changed(ordinary(9, 1, 2, 33), mixed_sizes)),
    # Logits.
    ("far apart logits: one source has nearly all", "F32", 2, 1e-6,
     ordinary(7, 1, 3, 33, 1.0, 25.0)),
    ("far apart logits: one source has nearly all", "BF16", 2, 1e-5,
     ordinary(7, 1, 3, 31, 1.0, 25.0)),
    ("far apart logits: one source has nearly all", "F64", 2, 1e-6,
     ordinary(7, 1, 3, 7, 1.0, 25.0)),
    ("query of zeros: equal weights", "F16", 2, 1e-6, ordinary(5, 1, 2, 33, 1.0, 0.0)),
    # Zero and equal rows.
    ("zero embedding", "BF16", 2, 1e-6, changed(ordinary(5, 1, 2, 33), zero_embedding)),
    ("zero embedding", "F64", 2, 1e-6, changed(ordinary(5, 1, 2, 3), zero_embedding)),
    ("outputs that cancel out: zero block", "F32", 2, 1e-6,
     changed(ordinary(5, 1, 2, 31), zero_block)),
    ("outputs that cancel out: zero block", "F16", 2, 1e-5,
     changed(ordinary(5, 1, 2, 32), zero_block)),
    ("a token of zero rows", "F32", 2, 1e-6, changed(ordinary(5, 1, 2, 7), zero_token)),
    ("a token of zero rows", "BF16", 2, 1e-6, changed(ordinary(5, 1, 2, 7), zero_token)),
    ("equal rows", "F32", 1, 1e-6, changed(ordinary(6, 1, 2, 33), equal_rows)),
    ("equal rows", "F64", 1, 1e-6, changed(ordinary(3, 1, 2, 31), equal_rows)),
    ("equal rows", "BF16", 1, 1e-5, changed(ordinary(5, 1, 2, 123), equal_rows)),
    ("equal rows", "F16", 1, 1e-6, changed(ordinary(4, 1, 2, 2), equal_rows)),
]


def to_torch(tensor):
    values = torch.from_numpy(st.decode(tensor))
    return values.to(TORCH[tensor.dtype])


def as_f64(values):
    return st.encode(values.to(torch.float64).numpy(), "F64")


def run_case(name, index, dtype, block_size, eps, make):
    arrays = make(seeded.generator(20260316 + index))
    keys = ("embedding", "previous_outputs", "pseudo_query")
    stored = {key: st.encode(array, dtype) for key, array in zip(keys, arrays)}
    embedding, outputs, query = (to_torch(stored[key]) for key in keys)
    sources = block_sources(embedding, outputs, block_size).to(torch.float64)
    retrieved, weights = read_depth_sources(sources, query.to(torch.float64), eps)
    stored["retrieved_representation"] = as_f64(retrieved)
    stored["attention_weights"] = as_f64(weights)
    stored["block_sources"] = as_f64(sources)
    for key, values in stored.items():
        if not numpy.isfinite(st.decode(values)).all():
            raise ValueError(f"{name}: {key} is not finite")
    return {f"{name}.{key}": tensor for key, tensor in stored.items()}


def main():
    tensors = {}
    metadata = {"cases": str(len(CASES))}
    for index, (about, dtype, block_size, eps, make) in enumerate(CASES):
        name = f"case{index:02d}"
        metadata[name] = f"block_size={block_size} eps={eps!r} dtype={dtype}"
        metadata[name + ".about"] = about
        tensors.update(run_case(name, index, dtype, block_size, eps, make))
    st.write(os.path.join(HERE, "golden.safetensors"), tensors, metadata)


if __name__ == "__main__":
    main()
