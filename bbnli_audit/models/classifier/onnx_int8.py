"""Rewrites the matrix products of a graph in int8, with a scale for each input row and each weight column.

ONNX Runtime's own quantization has one scale for a whole batch, so the probabilities of a text depend on the other
texts of its batch. A scale for each row avoids that. Fewer labels of minilm-nli then differ from float32: 0.85 %
instead of 1.84 % on BBNLI's texts. The price is 12 % more time for a text (docs/decisions/0009-fast-paths.md).
"""

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from bbnli_audit.models.protocol import Floats

if TYPE_CHECKING:
    from collections.abc import Iterator

    import onnx

# Weights use only seven bits: with eight, sums of products overflow on processors without VNNI.
_WEIGHT_LIMIT = 63
_ROW_LIMIT = 127
_ROW_ZERO = 128  # the zero point of unsigned bytes
# Constants that all products share.
_STEP, _ZERO, _HALF, _TINY = (f"int8/{name}" for name in ("step", "zero", "half", "tiny"))


def write_int8(graph_file: Path, int8_file: Path) -> Path:
    """Write a copy of a graph with its linear layers in int8. Embeddings, attention scores and the head stay float32.

    Raise ValueError if most of the weights in the graph's matrix products would stay in float32.
    """
    import onnx
    from onnx.numpy_helper import to_array

    model = onnx.load(graph_file)
    graph = model.graph
    weights = {
        tensor.name: tensor
        for tensor in graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) == 2
    }
    nodes: list[onnx.NodeProto] = []
    # Rows that are multiplied by several weights, and weights that several layers share, are quantized only once.
    row_names, weight_names, other_names = set[str](), set[str](), set[str]()
    for node in graph.node:
        if node.op_type != "MatMul" or node.input[1] not in weights:
            nodes.append(node)
            if node.op_type == "Gemm":
                other_names.update(weights.keys() & {node.input[1]})
            continue
        rows, weight = node.input
        if rows not in row_names:
            nodes.extend(_quantize_rows(rows))
            row_names.add(rows)
        if weight not in weight_names:
            graph.initializer.extend(_quantize_weight(weight, to_array(weights[weight])))
            weight_names.add(weight)
        nodes.extend(_multiply(rows, weight, node.output[0]))
    n_int8, n_other = (sum(prod(weights[name].dims) for name in names) for names in (weight_names, other_names))
    if n_int8 <= n_other:  # as in GPT-2, which uses Gemm
        raise ValueError("most of its matrix products cannot be computed in int8")
    graph.initializer.extend(_shared_constants())
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept)
    onnx.save(model, int8_file)
    return int8_file


def _quantize_rows(rows: str) -> "Iterator[onnx.NodeProto]":
    """Map each row's own range onto a byte: rows = middle + reach * (int8 - zero) * step."""
    from onnx.helper import make_node

    high, low, both, middle, half_range, reach, centred, unit, int8 = (
        f"{rows}/{name}" for name in ("high", "low", "both", "middle", "half_range", "reach", "centred", "unit", "int8")
    )
    yield make_node("ReduceMax", [rows], [high], axes=[-1], keepdims=1)
    yield make_node("ReduceMin", [rows], [low], axes=[-1], keepdims=1)
    yield make_node("Add", [high, low], [both])
    yield make_node("Mul", [both, _HALF], [middle])
    yield make_node("Sub", [high, middle], [half_range])
    yield make_node("Max", [half_range, _TINY], [reach])  # not 0 even if all values of a row are equal
    yield make_node("Sub", [rows, middle], [centred])
    yield make_node("Div", [centred, reach], [unit])
    yield make_node("QuantizeLinear", [unit, _STEP, _ZERO], [int8])


def _quantize_weight(name: str, weight: Floats) -> "Iterator[onnx.TensorProto]":
    import numpy as np
    from onnx.numpy_helper import from_array

    scale = np.abs(weight).max(axis=0) / _WEIGHT_LIMIT
    scale[scale == 0] = 1
    int8 = np.round(weight / scale)
    yield from_array(int8.astype(np.int8), f"{name}/int8")
    yield from_array((scale / _ROW_LIMIT).astype(np.float32), f"{name}/scale")
    # `_quantize_rows` subtracts a middle from each row, and these sums put it back. They are sums of the rounded
    # weights, because the product uses the rounded weights.
    yield from_array((int8 * scale).sum(axis=0).astype(np.float32), f"{name}/sums")


def _multiply(rows: str, weight: str, output: str) -> "Iterator[onnx.NodeProto]":
    import onnx
    from onnx.helper import make_node

    whole, number, scaled, product, shift = (f"{output}/{n}" for n in ("whole", "number", "scaled", "product", "shift"))
    yield make_node("MatMulInteger", [f"{rows}/int8", f"{weight}/int8", _ZERO], [whole])
    yield make_node("Cast", [whole], [number], to=onnx.TensorProto.FLOAT)
    yield make_node("Mul", [number, f"{weight}/scale"], [scaled])
    yield make_node("Mul", [scaled, f"{rows}/reach"], [product])
    yield make_node("Mul", [f"{rows}/middle", f"{weight}/sums"], [shift])
    yield make_node("Add", [product, shift], [output])


def _shared_constants() -> "Iterator[onnx.TensorProto]":
    import numpy as np
    from onnx.numpy_helper import from_array

    yield from_array(np.array(1 / _ROW_LIMIT, dtype=np.float32), _STEP)
    yield from_array(np.array(_ROW_ZERO, dtype=np.uint8), _ZERO)
    yield from_array(np.array(0.5, dtype=np.float32), _HALF)
    yield from_array(np.array(1e-12, dtype=np.float32), _TINY)
