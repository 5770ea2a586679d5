#!/usr/bin/env python3
"""Peer: torch.compile, which exists since PyTorch 2 and needs a C++ compiler."""

from __future__ import annotations

import os
import shutil
import sysconfig

import measure
import torch_read


def link_with_this_torch() -> None:
    """torch.compile looks for libtorch in Python's library directory first. Where that is the
    system's, another release's libtorch may lie there; then the check for vector instructions
    fails and silently scalar code is made."""
    import torch

    sysconfig.get_config_vars()["LIBDIR"] = os.path.join(os.path.dirname(torch.__file__), "lib")


def vector_instructions() -> str:
    from torch._inductor import cpu_vec_isa

    isa = cpu_vec_isa.pick_vec_isa()
    return str(isa).strip() if isa else ""


class TorchCompile:
    name = "peer-torch-compile"
    needs = ("torch",)
    dtypes = ("f32", "bf16")

    def version(self) -> str:
        import torch

        if not hasattr(torch, "compile"):
            raise measure.Absent(f"torch {torch.__version__} has no torch.compile")
        if shutil.which("g++") is None and shutil.which("clang++") is None:
            raise measure.Absent("torch.compile needs a C++ compiler")
        link_with_this_torch()
        if not (instructions := vector_instructions()):
            # Its scalar code would make the comparison look better than it is.
            raise measure.Absent(f"torch.compile of torch {torch.__version__} finds no vector "
                                 "instructions here")
        return f"torch {torch.__version__} with {instructions}"

    def prepare(self, problem, threads: int):
        import torch

        # One program per shape, as for a model that is served; nothing is left symbolic.
        torch._dynamo.reset()
        compiled = torch.compile(torch_read.read, dynamic=False, fullgraph=True)
        return torch_read.calls(compiled, problem, threads)


if __name__ == "__main__":
    measure.main(TorchCompile())
