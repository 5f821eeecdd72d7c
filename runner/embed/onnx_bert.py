"""BERT's forward pass in onnxruntime, straight from the file of weights: no torch, no conversion, no copy.

The graph is 10 KB of ONNX, written here field by field by onnx.proto; the package onnx would take 36 MB.
Its weights are external data that point into model.safetensors. Its fused operators are those of onnxruntime's
ContribOperators.md; GELU is the exact one, by erf.
"""

import json
import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.embed.weights import CONFIG, POOLER, WEIGHTS

States = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]
"""The last layer's states (texts, tokens, width) of ids and mask (texts, tokens), padded on the right."""

_FUSED = "com.microsoft"
_FLOAT, _INT32 = 1, 6
_IR_VERSION, _OPSET = 9, 17


def bert(folder: Path) -> States:
    """Return the model in a folder of the hub's layout, in float32, with OMP_NUM_THREADS threads or one per core."""
    # Read once, at the import: without it the wheels name this machine in a file and report every session to Microsoft.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    weights = (folder / WEIGHTS).resolve()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(weights.parent))
    # Threads that wait must not take the core from another process.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    graph = _model(json.loads((folder / CONFIG).read_bytes()), weights)
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def states(ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        fed = {"ids": ids, "types": np.zeros_like(ids), "mask": mask}
        last: NDArray[np.float32] = session.run(None, {name: rows.astype(np.int32) for name, rows in fed.items()})[0]
        return last

    return states


def _model(config: dict[str, Any], weights: Path) -> bytes:
    """Return a ModelProto: ids, types and mask to states."""
    eps, layers = float(config["layer_norm_eps"]), int(config["num_hidden_layers"])
    names = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    tables = [f"embeddings.{name}.weight" for name in names] + _norm("embeddings.LayerNorm")
    # Words, positions and types added and normalised; then each layer from the state before it.
    nodes = [_node("EmbedLayerNormalization", ["ids", "types", *tables, "mask"], ["0", "lengths"], _FUSED, epsilon=eps)]
    for layer in range(layers):
        nodes += _layer(f"encoder.layer.{layer}.", str(layer), str(layer + 1), int(config["num_attention_heads"]), eps)
    inputs = [_field(11, _value(name, _INT32, ["n", "t"])) for name in ("ids", "types", "mask")]
    output = _field(12, _value(str(layers), _FLOAT, ["n", "t", int(config["hidden_size"])]))
    initializers = [_field(5, tensor) for tensor in _tensors(weights)]
    graph = b"".join([*(_field(1, node) for node in nodes), _field(2, "bert"), *initializers, *inputs, output])
    opsets = _field(8, _field(2, _OPSET)) + _field(8, _field(1, _FUSED) + _field(2, 1))
    return _field(1, _IR_VERSION) + _field(7, graph) + opsets


def _layer(at: str, before: str, after: str, heads: int, eps: float) -> list[bytes]:
    """Return attention and feed-forward, each added to what went in and normalised. Weights lie as (out, in)."""
    attention, own = at + "attention.", [f"{at}attention.self.{part}" for part in ("query", "key", "value")]
    out, wide, narrow = attention + "output", at + "intermediate", at + "output"
    linear = [*own, *(f"{name}.dense" for name in (out, wide, narrow))]
    qkv, bias = at + "qkv", at + "bias"

    def added(rows: str, block: str, skip: str, to: str) -> list[bytes]:
        product = f"{block}.product"
        return [
            _node("MatMul", [rows, f"{block}.dense.T"], [product]),
            _node(
                "SkipLayerNormalization",
                [product, skip, *_norm(f"{block}.LayerNorm"), f"{block}.dense.bias"],
                [to],
                _FUSED,
                epsilon=eps,
            ),
        ]

    # The fused operators multiply by (in, out), so every weight is turned first, and queries, keys and values joined.
    return [
        *(_node("Transpose", [f"{name}.weight"], [f"{name}.T"], perm=[1, 0]) for name in linear),
        _node("Concat", [f"{name}.T" for name in own], [qkv], axis=1),
        _node("Concat", [f"{name}.bias" for name in own], [bias], axis=0),
        _node("Attention", [before, qkv, bias, "lengths"], [at + "context"], _FUSED, num_heads=heads),
        *added(at + "context", out, before, at + "attended"),
        _node("MatMul", [at + "attended", f"{wide}.dense.T"], [at + "wide"]),
        _node("BiasGelu", [at + "wide", f"{wide}.dense.bias"], [at + "gelu"], _FUSED),
        *added(at + "gelu", narrow, at + "attended", after),
    ]


def _norm(name: str) -> list[str]:
    return [f"{name}.weight", f"{name}.bias"]


def _tensors(weights: Path) -> Iterable[bytes]:
    """Return every float32 tensor of a safetensors file, as the location where it lies."""
    # safetensors: eight bytes of length, the header as JSON, then the data that its offsets count from.
    with weights.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    for name, row in header.items():
        if row.get("dtype") == "F32" and POOLER not in name:
            start, stop = row["data_offsets"]
            entries_of = {"location": weights.name, "offset": 8 + length + start, "length": stop - start}
            entries = (_field(13, _field(1, key) + _field(2, str(value))) for key, value in entries_of.items())
            shape = (_field(1, size) for size in row["shape"])
            yield b"".join([*shape, _field(2, _FLOAT), _field(8, name), *entries, _field(14, 1)])


def _node(
    operator: str, inputs: list[str], outputs: list[str], domain: str = "", **attributes: int | float | list[int]
) -> bytes:
    """Return a NodeProto."""
    names = [*(_field(1, name) for name in inputs), *(_field(2, name) for name in outputs), _field(4, operator)]
    values = (_field(5, _attribute(name, value)) for name, value in attributes.items())
    return b"".join([*names, *values, _field(7, domain)])


def _attribute(name: str, value: int | float | list[int]) -> bytes:
    if isinstance(value, float):
        typed = _varint(2 << 3 | 5) + struct.pack("<f", value) + _field(20, 1)
    elif isinstance(value, int):
        typed = _field(3, value) + _field(20, 2)
    else:
        typed = b"".join(_field(8, each) for each in value) + _field(20, 7)
    return _field(1, name) + typed


def _value(name: str, kind: int, sizes: list[str | int]) -> bytes:
    """Return a ValueInfoProto; a size that is a name is found out at run time."""
    shape = b"".join(_field(1, _field(2 if isinstance(size, str) else 1, size)) for size in sizes)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def _field(number: int, value: int | str | bytes) -> bytes:
    """Return a field of a protobuf message: a whole number, or what has a length."""
    # The key of a field is its number and its wire type: 0 for a varint, 2 for what has a length.
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    # Seven bits a byte, lowest first; the eighth says that more follow.
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
