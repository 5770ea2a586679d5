"""The library itself, called through its public C API with ctypes: what every peer is held to."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import Callable

import numpy as np

DTYPES = {"f32": 1, "f64": 2, "f16": 3, "bf16": 4}

# Starting threads from Python takes some 50 microseconds; below this a host would not split either.
SPLIT_FROM_TOKENS = 256


class Shape(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("tokens", ctypes.c_size_t), ("width", ctypes.c_size_t)]


class Rows(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("stride", ctypes.c_ssize_t)]


class PerSource(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("source_stride", ctypes.c_ssize_t),
        ("token_stride", ctypes.c_ssize_t),
    ]


class ReadArgs(ctypes.Structure):
    """attnres_read_args of include/attnres.h, field by field. A wrong field shows as a wrong
    result: every run begins with a comparison."""

    _fields_ = [
        ("sources", ctypes.POINTER(Rows)),
        ("source_count", ctypes.c_size_t),
        ("prefix", Rows),
        ("deltas", ctypes.POINTER(Rows)),
        ("delta_count", ctypes.c_size_t),
        ("prefix_out", Rows),
        ("push", Rows),
        ("query", ctypes.c_void_p),
        ("eps", ctypes.c_double),
        ("scale", ctypes.c_double),
        ("bias", ctypes.c_void_p),
        ("resume", ctypes.c_void_p),
        ("retrieved", Rows),
        ("normed", Rows),
        ("norm_gain", ctypes.c_void_p),
        ("norm_eps", ctypes.c_double),
        ("norm_policy", ctypes.c_int),
        ("weights", PerSource),
        ("logits", PerSource),
    ]


class Read:
    """One read of x[sources][tokens][width], set up once; run() only calls."""

    def __init__(
        self, library: Library, dtype: str, x: np.ndarray, query: np.ndarray, eps: float,
        threads: int
    ) -> None:
        sources, tokens, width = x.shape
        self._keep = (x, query)  # the C side holds pointers into these
        self.out = np.zeros((tokens, width), x.dtype)
        self.threads = threads if tokens >= SPLIT_FROM_TOKENS else 1
        self._library = library
        bounds = [tokens * i // self.threads for i in range(self.threads + 1)]
        self._calls = [
            self._call(dtype, x, query, eps, begin, end)
            for begin, end in zip(bounds[:-1], bounds[1:])
        ]
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None

    def _call(
        self, dtype: str, x: np.ndarray, query: np.ndarray, eps: float, begin: int, end: int
    ) -> Callable[[], int]:
        sources, _, width = x.shape
        rows = (Rows * sources)(*[Rows(x[s, begin].ctypes.data, 0) for s in range(sources)])
        shape = Shape(DTYPES[dtype], end - begin, width)
        args = ReadArgs(
            sources=rows,
            source_count=sources,
            query=query.ctypes.data,
            eps=eps,
            retrieved=Rows(self.out[begin].ctypes.data, 0),
        )
        shape_pointer, args_pointer = ctypes.byref(shape), ctypes.byref(args)
        read = self._library.read
        return lambda: read(shape_pointer, args_pointer)

    def run(self) -> None:
        if self._pool is None:
            statuses = [self._calls[0]()]
        else:
            statuses = list(self._pool.map(lambda call: call(), self._calls))
        if any(statuses):
            raise RuntimeError(f"attnres_read failed with status {max(statuses)}")

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


class Library:
    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        self.read = library.attnres_read
        self.read.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        for name in ("attnres_version", "attnres_level_reason", "attnres_level_name"):
            getattr(library, name).restype = ctypes.c_char_p
        self.version = library.attnres_version().decode()
        if not self.version.startswith("0.1."):
            raise RuntimeError(f"library.py describes version 0.1, not {self.version}")
        self.level = library.attnres_level_name(library.attnres_current_level()).decode()
        self.level_reason = library.attnres_level_reason().decode()
