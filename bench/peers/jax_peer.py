#!/usr/bin/env python3
"""Peer: JAX on the CPU, jitted."""

from __future__ import annotations

import os

import measure


def read(sources, pseudo_query, eps):
    import jax
    import jax.numpy as jnp

    mean_square = jnp.mean(jnp.square(sources), axis=-1, keepdims=True)
    normalized = sources / jnp.sqrt(mean_square + jnp.asarray(eps, sources.dtype))
    logits = jnp.sum(normalized * pseudo_query, axis=-1)
    weights = jax.nn.softmax(logits, axis=0)
    return jnp.sum(weights[..., None] * sources, axis=0)


class Jax:
    name = "peer-jax"
    needs = ("jax",)
    dtypes = ("f32", "bf16")

    def version(self) -> str:
        import jax

        return f"jax {jax.__version__}"

    def prepare(self, problem, threads: int):
        import jax
        import numpy

        def array(values):
            if problem.dtype == "bf16":
                values = values.view(jax.numpy.bfloat16)
            return jax.device_put(values)

        jitted = jax.jit(read, static_argnums=2)
        x, query = array(problem.x), array(problem.query_stored)

        def run():
            return jitted(x, query, problem.eps).block_until_ready()

        return run, lambda: numpy.asarray(run()).astype(numpy.float32)


if __name__ == "__main__":
    os.environ["JAX_PLATFORMS"] = "cpu"
    measure.main(Jax())
