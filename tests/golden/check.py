#!/usr/bin/env python3
"""Computes the committed files once more by another route and prints the largest deviations.

golden.safetensors and k3.safetensors, made with PyTorch, are compared with plain Python and exact
sums; the references in tests/data, made so, with NumPy. Ends with 1 if anything is off.
"""

import os
import sys

import numpy

import plain_read
import safetensors_io as st

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, os.pardir, "data")
BOUND = 1e-13  # relative to the largest source element of that place, for weights to 1


class Report:
    def __init__(self):
        self.bad = 0

    def close(self, what, got, wanted, size, quiet=False):
        """got and wanted differ by at most BOUND * size; returns the largest such quotient."""
        if got.shape != wanted.shape:
            self.bad += 1
            print(f"BAD {what}: shapes {got.shape} and {wanted.shape}")
            return numpy.inf
        error = numpy.abs(got - wanted)
        size = numpy.broadcast_to(size, error.shape)
        quotient = numpy.divide(error, size, out=numpy.where(error > 0, numpy.inf, 0.0),
                                where=size > 0)
        worst = float(quotient.max(initial=0.0))
        if worst > BOUND:
            self.bad += 1
        if worst > BOUND or not quiet:
            print(f"{'BAD' if worst > BOUND else 'ok '} {what}: {worst:.2g}")
        return worst

    def same(self, what, got, wanted):
        self.close(what, got, wanted, 0.0)


def fields(text):
    return dict(field.split("=") for field in text.split())


# ---- golden.safetensors ---------------------------------------------------------------------


def check_case(report, name, about, parameters, values):
    dtype = parameters["dtype"]
    outputs = values["previous_outputs"]
    sums = plain_read.block_sums(outputs, int(parameters["block_size"]), dtype)
    sources = numpy.stack([values["embedding"]] + sums)
    count = 1 + -(-len(outputs) // int(parameters["block_size"]))
    if sources.shape[0] != count or not numpy.array_equal(sources, values["block_sources"]):
        report.bad += 1
        print(f"BAD {name}: block_sources")
    retrieved, weights = plain_read.read(sources, values["pseudo_query"], float(parameters["eps"]))
    largest = numpy.abs(sources).max(axis=0)
    off = (
        report.close(name, values["retrieved_representation"], retrieved, largest, quiet=True),
        report.close(name, values["attention_weights"], weights, 1.0, quiet=True),
    )
    batch, sequence, width = values["embedding"].shape
    print(f"{name} {dtype:4} batch {batch} sequence {sequence} width {width:4} outputs "
          f"{len(outputs):2} {parameters['block_size']:>2} a block, eps {parameters['eps']:5} "
          f"off {off[0]:7.1g} {off[1]:7.1g}  {about}")
    return off


def check_golden(report):
    tensors, metadata = st.read(os.path.join(HERE, "golden.safetensors"))
    worst = []
    for index in range(int(metadata["cases"])):
        name = f"case{index:02d}"
        values = {key[len(name) + 1 :]: st.decode(tensor) for key, tensor in tensors.items()
                  if key.startswith(name + ".")}
        worst.append(check_case(report, name, metadata[name + ".about"], fields(metadata[name]),
                                values))
    print(f"golden: {len(worst)} cases, result off by at most {max(w[0] for w in worst):.2g}, "
          f"weights by {max(w[1] for w in worst):.2g}")


# ---- k3.safetensors -------------------------------------------------------------------------


def stand_in(site, x, dtype):
    """Attention at even sites, feed-forward at odd ones."""
    x = x.astype(numpy.float32)
    if site % 2 == 0:
        y = numpy.float32(0.5) * numpy.roll(x, -1, axis=-1) + numpy.float32(0.25) * x
    else:
        y = numpy.roll(x, 1, axis=-1) - numpy.float32(0.5) * x
    return st.rounded(y, dtype)


def normalised(x, gain, eps, dtype, round_before_gain):
    scale = 1.0 / numpy.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    y = st.rounded(x * scale, dtype) if round_before_gain else x * scale
    return st.rounded(y * gain, dtype)


def check_k3_case(report, name, parameters, counts, v):
    dtype = parameters["dtype"]
    block = int(parameters["block_size"])
    eps = float(parameters["eps"])
    query = v["query_norm"].astype(numpy.float32) * v["query_proj"].astype(numpy.float32)
    read_off, weight_off, bank = [], [], []
    report.same(f"{name} first prefix", v["prefix"][0], v["embedding"])
    for site, count in enumerate(counts):
        prefix = v["prefix"][site]
        if count != len(bank):
            report.bad += 1
            print(f"BAD {name} site {site}: bank count")
        rows = numpy.stack(bank + [prefix])
        result, weights = plain_read.read(rows[:, None], query[site].astype(numpy.float64), eps)
        read_off.append(report.close(f"{name} read {site}", v["read_exact"][site], result[0],
                                     numpy.abs(rows).max(axis=0), quiet=True))
        weight_off.append(report.close(f"{name} weights {site}", v["weights"][site][: count + 1],
                                       weights[:, 0], 1.0, quiet=True))
        equal = numpy.array_equal(v["read"][site], st.rounded(v["read_exact"][site], dtype))
        for once_more in (False, True):
            normed = normalised(v["read"][site], v["norm_gain"][site], eps, dtype, once_more)
            equal = equal and numpy.array_equal(v["normed"][site], normed)
        if site < len(v["output"]):
            push = site % 2 == 0 and site // 2 % block == 0
            if push:
                bank.append(prefix)
            output = stand_in(site, v["normed"][site], dtype)
            equal = equal and numpy.array_equal(v["output"][site], output)
            total = output.astype(numpy.float32)
            if not push:
                total = prefix.astype(numpy.float32) + total
            equal = equal and numpy.array_equal(v["prefix"][site + 1], st.rounded(total, dtype))
        if not equal:
            report.bad += 1
            print(f"BAD {name} site {site}: read, normed, output or next prefix")
    report.same(f"{name} bank at the end", v["bank"], numpy.stack(bank))
    print(f"{name} {dtype:4} width {parameters['width']:>3}: {len(counts)} sites, read off by at "
          f"most {max(read_off):.2g}, weights by {max(weight_off):.2g}")


def check_k3(report):
    tensors, metadata = st.read(os.path.join(HERE, "k3.safetensors"))
    for index in range(int(metadata["cases"])):
        name = f"k3_{index}"
        values = {key[len(name) + 1 :]: st.decode(tensor) for key, tensor in tensors.items()
                  if key.startswith(name + ".")}
        counts = [int(count) for count in metadata[name + ".bank_counts"].split()]
        check_k3_case(report, name, fields(metadata[name]), counts, values)


# ---- tests/data -----------------------------------------------------------------------------


def check_minilm(report):
    for name, dtype in (("minilm", "F32"), ("minilm-bf16", "BF16")):
        tensors, _ = st.read(os.path.join(DATA, name + ".safetensors"))
        reference, parameters = st.read(os.path.join(DATA, name + "-reference.safetensors"))
        v = {key: st.decode(tensor) for key, tensor in tensors.items()}
        wanted = {key: st.decode(tensor) for key, tensor in reference.items()}
        kind = numpy.float32
        h = v["previous_outputs"].astype(kind)
        block = int(parameters["block_size"])
        sums = [numpy.add.accumulate(h[first : first + block], axis=0, dtype=kind)[-1]
                for first in range(0, len(h), block)]
        sources = numpy.stack([v["embedding"]] + [st.rounded(total, dtype) for total in sums])
        report.same(f"{name} block_sources", sources, wanted["block_sources"])
        mean_square = numpy.einsum("sbtd,sbtd->sbt", sources, sources) / sources.shape[-1]
        logits = sources @ v["pseudo_query"] / numpy.sqrt(mean_square + float(parameters["eps"]))
        powers = numpy.exp(logits - logits.max(axis=0))
        weights = powers / powers.sum(axis=0)
        retrieved = numpy.einsum("sbt,sbtd->btd", weights, sources)
        report.close(f"{name} attention_weights", weights, wanted["attention_weights"], 1.0)
        report.close(f"{name} retrieved_representation", retrieved,
                     wanted["retrieved_representation"], numpy.abs(sources).max(axis=0))


def main():
    report = Report()
    check_golden(report)
    check_k3(report)
    check_minilm(report)
    print(f"{report.bad} bad")
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main())
