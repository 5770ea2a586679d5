#!/usr/bin/env python3
"""Peer: PyTorch, eager."""

from __future__ import annotations

import measure
import torch_read


class TorchEager:
    name = "peer-torch-eager"
    needs = ("torch",)
    dtypes = ("f32", "bf16")

    def version(self) -> str:
        import torch

        return f"torch {torch.__version__}"

    def prepare(self, problem, threads: int):
        return torch_read.calls(torch_read.read, problem, threads)


if __name__ == "__main__":
    measure.main(TorchEager())
