"""The block sum and the read once more, in plain Python floats and with exactly rounded sums.

No line is shared with the PyTorch code of the generators: math.fsum rounds a whole sum once, and
products of two float32, float16 or bfloat16 values are exact in a Python float.
"""

import math

import numpy

import safetensors_io as st


def block_sums(outputs, block_size, dtype):
    """[layers, ...] values of `dtype` -> [blocks, ...]: chronological sums of block_size outputs,
    the last one possibly of fewer, kept in float32 (float64 for F64) and rounded once at the end.
    """
    accumulator = numpy.float64 if dtype == "F64" else numpy.float32
    sums = []
    for first in range(0, len(outputs), block_size):
        total = outputs[first].astype(accumulator)
        for output in outputs[first + 1 : first + block_size]:
            total = total + output.astype(accumulator)
        sums.append(st.rounded(total, dtype))
    return sums


def read_token(rows, query, eps):
    """rows: one list of numbers per source -> (result, weights) of one token."""
    width = len(query)
    logits = []
    for row in rows:
        square = math.fsum(x * x for x in row) / width + eps
        dot = math.fsum(x * q for x, q in zip(row, query))
        logits.append(dot / math.sqrt(square))
    largest = max(logits)
    powers = [math.exp(logit - largest) for logit in logits]
    total = math.fsum(powers)
    weights = [power / total for power in powers]
    result = [math.fsum(w * row[i] for w, row in zip(weights, rows)) for i in range(width)]
    return result, weights


def read(sources, query, eps):
    """sources [sources, batch, sequence, width] -> (result [batch, sequence, width],
    weights [sources, batch, sequence])"""
    count, batch, sequence, width = sources.shape
    retrieved = numpy.empty((batch, sequence, width))
    weights = numpy.empty((count, batch, sequence))
    query = query.tolist()
    for b in range(batch):
        for t in range(sequence):
            retrieved[b, t], weights[:, b, t] = read_token(sources[:, b, t].tolist(), query, eps)
    return retrieved, weights
