#!/usr/bin/env python3
"""Writes k3.safetensors: a small stack with the reads, pushes and roundings of Kimi K3.

One decoder layer of the public reference model does, with the state in the model's dtype:

    x = read(bank, prefix)                    layer 0 has no bank yet: x = prefix
    every block_size-th layer, 0 included:    bank gets the raw prefix; prefix = nothing
    y = attention(norm(x));  prefix = y       or prefix + y, rounded once
    x = read(bank, prefix)
    z = feed_forward(norm(x));  prefix = prefix + z, rounded once

and after the last layer follow one more read and the model's norm. Every read has a query of its
own, norm.weight * proj.weight, multiplied in float32. A read's result is rounded to the dtype
before it is normalised. Attention and feed-forward are replaced by functions of a few exact
operations, so a test can repeat them bit for bit. Names and rules are in README.md.
"""

import os

os.environ["ATEN_CPU_CAPABILITY"] = "default"

import numpy
import torch

import safetensors_io as st
import seeded

torch.set_num_threads(1)

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = {"F32": torch.float32, "BF16": torch.bfloat16}

LAYERS = 10
BLOCK_SIZE = 3
SITES = 2 * LAYERS + 1  # two a layer: attention, feed-forward; then the final one
MOST_SOURCES = -(-LAYERS // BLOCK_SIZE) + 1  # all bank rows and the prefix
EPS = 1e-5
TOKENS = 3
CASES = [("k3_0", "BF16", 384), ("k3_1", "BF16", 123), ("k3_2", "F32", 123)]


# ---- The stand-ins --------------------------------------------------------------------------


def attention(x):
    """y_i = 0.5 * x_{i+1} + 0.25 * x_i, indices modulo the width. The products are exact, the sum
    is rounded to float32 and then to the dtype."""
    wide = x.to(torch.float32)
    return (0.5 * torch.roll(wide, -1, dims=-1) + 0.25 * wide).to(x.dtype)


def feed_forward(x):
    """z_i = x_{i-1} - 0.5 * x_i, in the same manner."""
    wide = x.to(torch.float32)
    return (torch.roll(wide, 1, dims=-1) - 0.5 * wide).to(x.dtype)


# ---- The reference's steps; float64 between the points where it rounds -----------------------


def narrow(values, dtype):
    """float64 -> float32 -> dtype."""
    return values.to(torch.float32).to(dtype)


def read(bank, prefix, query):
    """bank [K, tokens, width], prefix [tokens, width] -> (mix, weights [K + 1, tokens]), float64"""
    rows = torch.cat([bank, prefix.unsqueeze(0)]).to(torch.float64)
    keys = rows / torch.sqrt(rows.square().mean(dim=-1, keepdim=True) + EPS)
    weights = torch.softmax((keys * query.to(torch.float64)).sum(dim=-1), dim=0)
    return (weights.unsqueeze(-1) * rows).sum(dim=0), weights


def rms_norm(x, gain):
    wide = x.to(torch.float64)
    scale = 1.0 / torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + EPS)
    return narrow(wide * scale * gain.to(torch.float64), x.dtype)


def add(x, y):
    return (x.to(torch.float32) + y.to(torch.float32)).to(x.dtype)


class Stack:
    """Runs the layers and records, per read site, what goes in and what comes out."""

    def __init__(self, embedding, queries, gains):
        self.dtype = embedding.dtype
        self.queries = queries
        self.gains = gains
        self.prefix = embedding
        self.bank = embedding.new_empty((0,) + tuple(embedding.shape))
        self.record = {key: [] for key in
                       ("prefix", "read", "read_exact", "weights", "normed", "output")}
        self.bank_counts = []

    def read_and_norm(self):
        """Reads at the next site and returns the normalised result."""
        site = len(self.bank_counts)
        exact, weights = read(self.bank, self.prefix, self.queries[site])
        result = narrow(exact, self.dtype)
        padded = weights.new_zeros((MOST_SOURCES, weights.shape[1]))
        padded[: weights.shape[0]] = weights
        normed = rms_norm(result, self.gains[site])
        self.bank_counts.append(self.bank.shape[0])
        values = {"prefix": self.prefix, "read": result, "read_exact": exact, "weights": padded,
                  "normed": normed}
        for key, value in values.items():
            self.record[key].append(value)
        return normed

    def layer(self, index):
        x = self.read_and_norm()
        push = index % BLOCK_SIZE == 0
        if push:
            self.bank = torch.cat([self.bank, self.prefix.unsqueeze(0)])
        y = attention(x)
        self.prefix = y if push else add(self.prefix, y)
        self.record["output"].append(y)
        z = feed_forward(self.read_and_norm())
        self.prefix = add(self.prefix, z)
        self.record["output"].append(z)


# ---- The cases ------------------------------------------------------------------------------


def to_torch(tensor):
    values = torch.from_numpy(st.decode(tensor))
    return values.to(torch.bfloat16 if tensor.dtype == "BF16" else torch.float32)


def parameters(random, width, dtype):
    """The tensors a checkpoint would hold, and the embedding of the tokens."""
    # 0.5, 1 or 2, so that it makes no difference whether a norm rounds before its gain as well.
    gains = 2.0 ** numpy.floor(seeded.spread(random, (SITES, width), -1.0, 2.0))
    return {
        "embedding": st.encode(seeded.bell(random, (TOKENS, width)), dtype),
        "query_norm": st.encode(1.0 + 0.3 * seeded.bell(random, (SITES, width)), "BF16"),
        "query_proj": st.encode(seeded.bell(random, (SITES, width)) * (1.7 / width**0.5), "BF16"),
        "norm_gain": st.encode(gains, "BF16"),
    }


def run_case(name, seed, dtype, width):
    """-> (tensors, how many bank rows each site reads)"""
    stored = parameters(seeded.generator(seed), width, dtype)
    wide = {key: to_torch(tensor).to(torch.float32) for key, tensor in stored.items()}
    stack = Stack(to_torch(stored["embedding"]), wide["query_norm"] * wide["query_proj"],
                  wide["norm_gain"])
    for index in range(LAYERS):
        stack.layer(index)
    stack.read_and_norm()
    for key, values in stack.record.items():
        kind = "F64" if key in ("read_exact", "weights") else dtype
        stored[key] = st.encode(torch.stack(values).to(torch.float64).numpy(), kind)
    stored["bank"] = st.encode(stack.bank.to(torch.float64).numpy(), dtype)
    return {f"{name}.{key}": tensor for key, tensor in stored.items()}, stack.bank_counts


def main():
    tensors = {}
    metadata = {"cases": str(len(CASES))}
    for index, (name, dtype, width) in enumerate(CASES):
        case, bank_counts = run_case(name, 20260728 + index, dtype, width)
        tensors.update(case)
        metadata[name] = (f"dtype={dtype} width={width} tokens={TOKENS} layers={LAYERS} "
                          f"block_size={BLOCK_SIZE} eps={EPS!r} norm_eps={EPS!r}")
        metadata[name + ".bank_counts"] = " ".join(str(count) for count in bank_counts)
    st.write(os.path.join(HERE, "k3.safetensors"), tensors, metadata)


if __name__ == "__main__":
    main()
