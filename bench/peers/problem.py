"""What is computed: the benchmark's default `read` shapes, with the same seeded data for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WIDTH = 7168  # Kimi K3's, with its largest number of sources
SOURCES = 9
EPS = 1e-5
TOKENS = (1, 16, 512)
ELEMENT_BYTES = {"f32": 4, "bf16": 2}

# Largest difference allowed, relative to the largest magnitude of the result. In bf16 a framework
# rounds after every step of the formula, its logits too; the library rounds once.
TOLERANCE = {"f32": 1e-4, "bf16": 5e-2}


def round_to_bf16(values: np.ndarray) -> np.ndarray:
    """Nearest even, as uint16. No NaN here."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def widen_bf16(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.uint32) << 16).view(np.float32)


@dataclass
class Problem:
    """Sources [sources][tokens][width] and a query. bf16 numbers are kept as uint16; `query` is
    what the library gets (f32), `query_stored` the same numbers in the sources' type."""

    dtype: str
    tokens: int
    x: np.ndarray
    query: np.ndarray
    query_stored: np.ndarray
    eps: float = EPS

    @property
    def bytes_read(self) -> int:
        return self.x.nbytes

    @property
    def bytes_written(self) -> int:
        return self.x.nbytes // self.x.shape[0]

    def widened(self, result: np.ndarray) -> np.ndarray:
        return widen_bf16(result) if self.dtype == "bf16" else result.astype(np.float32)


def make_problem(dtype: str, tokens: int) -> Problem:
    generator = np.random.default_rng(1)
    shape = (SOURCES, tokens, WIDTH)
    x = generator.standard_normal(shape, dtype=np.float32)
    # A norm of about 1 makes logits of about 1: no source is left out, none stands alone.
    query = generator.standard_normal(WIDTH, dtype=np.float32) / np.float32(WIDTH**0.5)
    if dtype == "f32":
        return Problem(dtype, tokens, x, query, query)
    stored = round_to_bf16(query)
    return Problem(dtype, tokens, round_to_bf16(x), widen_bf16(stored), stored)


def reference(problem: Problem, tokens: int) -> np.ndarray:
    """The formula in double, for the first tokens: the library is checked as well."""
    x = problem.widened(problem.x[:, :tokens]).astype(np.float64)
    rms = np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + problem.eps)
    logits = np.sum(x / rms * problem.query, axis=-1)
    weights = np.exp(logits - logits.max(axis=0))
    weights /= weights.sum(axis=0)
    return np.sum(weights[:, :, None] * x, axis=0)


def relative_difference(result: np.ndarray, expected: np.ndarray) -> float:
    if result.shape != expected.shape or not np.all(np.isfinite(result)):
        return float("inf")
    return float(np.max(np.abs(result - expected)) / np.max(np.abs(expected)))
