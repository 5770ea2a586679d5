"""The formula in PyTorch, as the description of Block Attention Residuals gives it."""

from __future__ import annotations

from typing import Callable


def read(sources, pseudo_query, eps):
    import torch

    normalized = sources / torch.sqrt(sources.square().mean(dim=-1, keepdim=True) + eps)
    logits = (normalized * pseudo_query).sum(dim=-1)
    weights = torch.softmax(logits, dim=0)
    return (weights.unsqueeze(-1) * sources).sum(dim=0)


def tensor(values, dtype: str):
    import numpy
    import torch

    if dtype == "bf16":  # numpy has no such type; the bits are the same
        return torch.from_numpy(values.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)


def calls(function, problem, threads: int) -> tuple[Callable[[], object], Callable[[], object]]:
    import torch

    torch.set_num_threads(threads)
    x = tensor(problem.x, problem.dtype)
    query = tensor(problem.query_stored, problem.dtype)

    def run():
        with torch.inference_mode():
            return function(x, query, problem.eps)

    return run, lambda: run().float().numpy()
