"""Reads and writes safetensors files, for the scripts of tests/golden and tests/data.

A file is: the header's length (8 bytes, little endian), the header (JSON, padded with spaces to a
multiple of 8), the tensors' bytes. Files written here hold the wider dtypes first, so that every
tensor is aligned to its element, then follow the names; the same content gives the same bytes.
NumPy has no bfloat16: its elements are handled as uint16, the upper half of a float32.
"""

import json
import os
import struct
from collections import namedtuple

import numpy

# data: the elements' bytes, little endian, row by row.
Tensor = namedtuple("Tensor", "dtype shape data")

ELEMENT = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def element_size(dtype):
    return numpy.dtype(ELEMENT[dtype]).itemsize


# ---- Files ----------------------------------------------------------------------------------


def parse(content):
    """The bytes of a file -> ({name: Tensor}, metadata)."""
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length].decode("utf-8"))
    metadata = header.pop("__metadata__", {})
    body = memoryview(content)[8 + length :]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = Tensor(entry["dtype"], tuple(entry["shape"]), body[begin:end])
    return tensors, metadata


def read(path):
    with open(path, "rb") as file:
        return parse(file.read())


def serialize(tensors, metadata=None):
    """({name: Tensor}, {text: text}) -> the bytes of a file."""
    header = {}
    if metadata:
        header["__metadata__"] = dict(metadata)
    body = b""
    for name in sorted(tensors, key=lambda name: (-element_size(tensors[name].dtype), name)):
        tensor = tensors[name]
        data = bytes(tensor.data)
        count = 1
        for extent in tensor.shape:
            count *= extent
        if len(data) != count * element_size(tensor.dtype):
            raise ValueError(f"{name}: {len(data)} bytes do not fit shape {tensor.shape}")
        header[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def write(path, tensors, metadata=None):
    content = serialize(tensors, metadata)
    with open(path, "wb") as file:
        file.write(content)
    print(f"{os.path.basename(path)}: {len(content)} bytes, {len(tensors)} tensors")


# ---- Values ---------------------------------------------------------------------------------


def bf16_bits(values):
    """float32 -> the uint16 of the nearest bfloat16, ties to even. Not for NaN."""
    bits = numpy.asarray(values, numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def encode(values, dtype):
    """Numbers -> Tensor. To BF16 and F16 they are rounded by way of float32."""
    values = numpy.asarray(values)
    if dtype != "F64":
        values = values.astype(numpy.float32)
    if dtype == "BF16":
        values = bf16_bits(values).reshape(values.shape)
    return Tensor(dtype, values.shape, values.astype(ELEMENT[dtype]).tobytes())


def decode(tensor):
    """Tensor -> float64 array with the same values, exactly."""
    values = numpy.frombuffer(tensor.data, ELEMENT[tensor.dtype])
    if tensor.dtype == "BF16":
        values = (values.astype(numpy.uint32) << 16).view(numpy.float32)
    return values.astype(numpy.float64).reshape(tensor.shape)


def rounded(values, dtype):
    """Numbers -> float64 array of the values they have once stored in `dtype`."""
    return decode(encode(values, dtype))
