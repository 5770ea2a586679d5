#!/usr/bin/env python3
"""Peer: ONNX Runtime's CPU provider on a graph of the formula, all graph optimisations on."""

from __future__ import annotations

import measure


def graph(dtype: str, shape: tuple[int, ...], eps: float) -> bytes:
    from onnx import TensorProto, checker, helper

    element = {"f32": TensorProto.FLOAT, "bf16": TensorProto.BFLOAT16}[dtype]
    sources, tokens, width = shape

    def constant(name: str, kind: int, values: list) -> object:
        return helper.make_tensor(name, kind, [len(values)], values)

    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("ReduceMean", ["square", "last"], ["mean"], keepdims=1),
        helper.make_node("Add", ["mean", "eps"], ["mean_eps"]),
        helper.make_node("Sqrt", ["mean_eps"], ["rms"]),
        helper.make_node("Div", ["x", "rms"], ["normalized"]),
        helper.make_node("Mul", ["normalized", "query"], ["products"]),
        helper.make_node("ReduceSum", ["products", "last"], ["logits"], keepdims=0),
        helper.make_node("Softmax", ["logits"], ["weights"], axis=0),
        helper.make_node("Unsqueeze", ["weights", "last"], ["weights_column"]),
        helper.make_node("Mul", ["weights_column", "x"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "first"], ["retrieved"], keepdims=0),
    ]
    constants = [
        constant("last", TensorProto.INT64, [-1]),
        constant("first", TensorProto.INT64, [0]),
        constant("eps", element, [eps]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", element, [sources, tokens, width]),
        helper.make_tensor_value_info("query", element, [width]),
    ]
    outputs = [helper.make_tensor_value_info("retrieved", element, [tokens, width])]
    model = helper.make_model(
        helper.make_graph(nodes, "read", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,  # of that opset; older runtimes refuse newer ones
    )
    checker.check_model(model)
    return model.SerializeToString()


class OnnxRuntime:
    name = "peer-onnxruntime"
    needs = ("onnx", "onnxruntime")
    dtypes = ("f32", "bf16")

    def version(self) -> str:
        import onnxruntime

        return f"onnxruntime {onnxruntime.__version__}"

    def prepare(self, problem, threads: int):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        model = graph(problem.dtype, problem.x.shape, problem.eps)
        try:
            session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
        except Exception as error:
            if problem.dtype == "bf16":  # most CPU operators have no bf16 kernel
                raise measure.Absent(str(error).splitlines()[0][:160]) from error
            raise

        # Bound once, so that no call copies the inputs or allocates the output.
        value = onnxruntime.OrtValue.ortvalue_from_numpy
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", value(problem.x))
        binding.bind_ortvalue_input("query", value(problem.query_stored))
        out = value(problem.x[0].copy())
        binding.bind_ortvalue_output("retrieved", out)

        def result():
            session.run_with_iobinding(binding)
            return problem.widened(out.numpy())

        return lambda: session.run_with_iobinding(binding), result


if __name__ == "__main__":
    measure.main(OnnxRuntime())
