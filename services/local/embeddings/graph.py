"""Build a BERT sentence encoder as an ONNX graph from its tensors.

The graph is built here because an exported one would have to be downloaded, or made with torch
(300 MB more memory, and three times slower per query on a CPU). The architecture is about thirty
lines of standard operators, and the tests compare it with a plain numpy implementation.

Three computations are done once, in the constants, instead of for every text. The query's
1/sqrt(d) scale is in its weights. The query, key and value projections are one matrix. The
token-type embedding (always type 0 here) is added to the position embeddings.

The inputs `ids` and `mask` are int64 [batch, tokens]. The output `vectors` is float32 [batch,
dimension]: the mean of the unmasked tokens, scaled to length 1.
"""

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

from services.local.embeddings.model import Model

Array = NDArray[np.float32]

# Part of every cached graph's name. Increase it with every change to the graph that is built here.
GRAPH_VERSION = 1
# The oldest versions that have all operators used here (Gelu came with opset 20).
_OPSET = 20
_IR_VERSION = 10
_MASK_SCORE = -10_000.0


def build(model: Model, weights: Mapping[str, Array]) -> ModelProto:
    """Return the checked graph of `model`; raise KeyError with the name of a missing tensor."""
    draft = _Draft(model, weights)
    state = _embeddings(draft)
    bias = _attention_bias(draft)
    for layer in range(model.layers):
        state = _layer(draft, state, bias, f"encoder.layer.{layer}")
    _pool(draft, state)
    return draft.finish()


class _Draft:
    """A graph under construction: each call adds one node and returns the name of its output."""

    def __init__(self, model: Model, weights: Mapping[str, Array]) -> None:
        self.model = model
        self.weights = weights
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def node(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def split(self, value: str, parts: int) -> list[str]:
        names = [f"Split_{len(self._nodes)}_{part}" for part in range(parts)]
        self._nodes.append(helper.make_node("Split", [value], names, axis=-1, num_outputs=parts))
        return names

    def constant(self, value: NDArray[np.generic]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def scalar(self, value: float) -> str:
        return self.constant(np.array([value], np.float32))

    def norm(self, value: str, prefix: str) -> str:
        scale, bias = (
            self.constant(self.weights[f"{prefix}.LayerNorm.{kind}"]) for kind in ("weight", "bias")
        )
        return self.node("LayerNormalization", value, scale, bias, axis=-1, epsilon=self.model.epsilon)

    def dense(self, value: str, weight: Array, bias: Array) -> str:
        product = self.node("MatMul", value, self.constant(weight.T))
        return self.node("Add", product, self.constant(bias))

    def named_dense(self, value: str, prefix: str) -> str:
        return self.dense(value, self.weights[f"{prefix}.weight"], self.weights[f"{prefix}.bias"])

    def finish(self) -> ModelProto:
        integers, floats = TensorProto.INT64, TensorProto.FLOAT
        graph = helper.make_graph(
            self._nodes,
            "sentence_encoder",
            [helper.make_tensor_value_info(name, integers, ["batch", "tokens"]) for name in ("ids", "mask")],
            [helper.make_tensor_value_info("vectors", floats, ["batch", self.model.dimension])],
            self._constants,
        )
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="loci")
        checker.check_model(model)
        return model


def _embeddings(draft: _Draft) -> str:
    weights = draft.weights
    words = draft.constant(weights["embeddings.word_embeddings.weight"])
    kind = weights["embeddings.token_type_embeddings.weight"][0]
    positions = draft.constant(weights["embeddings.position_embeddings.weight"] + kind)
    length = draft.node("Shape", "ids", start=1, end=2)
    used_positions = draft.node("Slice", positions, draft.integers(0), length, draft.integers(0))
    return draft.norm(draft.node("Add", draft.node("Gather", words, "ids"), used_positions), "embeddings")


def _attention_bias(draft: _Draft) -> str:
    """Return a term for the scores [batch, heads, tokens, tokens]: a large negative number for padding."""
    mask = draft.node("Cast", "mask", to=TensorProto.FLOAT)
    padding = draft.node("Sub", draft.scalar(1), mask)
    return draft.node(
        "Unsqueeze", draft.node("Mul", padding, draft.scalar(_MASK_SCORE)), draft.integers(1, 2)
    )


def _layer(draft: _Draft, state: str, bias: str, prefix: str) -> str:
    attended = draft.named_dense(
        _attention(draft, state, bias, f"{prefix}.attention.self"), f"{prefix}.attention.output.dense"
    )
    state = draft.norm(draft.node("Add", state, attended), f"{prefix}.attention.output")
    inner = draft.node("Gelu", draft.named_dense(state, f"{prefix}.intermediate.dense"))
    outer = draft.named_dense(inner, f"{prefix}.output.dense")
    return draft.norm(draft.node("Add", state, outer), f"{prefix}.output")


def _attention(draft: _Draft, state: str, bias: str, prefix: str) -> str:
    weight, offset = _projection(draft, prefix)
    query, key, value = draft.split(draft.dense(state, weight, offset), 3)
    scores = draft.node("MatMul", _heads(draft, query, [0, 2, 1, 3]), _heads(draft, key, [0, 2, 3, 1]))
    shares = draft.node("Softmax", draft.node("Add", scores, bias), axis=-1)
    mixed = draft.node("MatMul", shares, _heads(draft, value, [0, 2, 1, 3]))
    joined = draft.node("Transpose", mixed, perm=[0, 2, 1, 3])
    return draft.node("Reshape", joined, draft.integers(0, 0, draft.model.dimension))


def _projection(draft: _Draft, prefix: str) -> tuple[Array, Array]:
    scale = np.float32(1 / sqrt(draft.model.dimension // draft.model.heads))
    parts = [("query", scale), ("key", np.float32(1)), ("value", np.float32(1))]
    weight = np.concatenate([draft.weights[f"{prefix}.{part}.weight"] * factor for part, factor in parts])
    bias = np.concatenate([draft.weights[f"{prefix}.{part}.bias"] * factor for part, factor in parts])
    return weight, bias


def _heads(draft: _Draft, value: str, order: list[int]) -> str:
    split = draft.node("Reshape", value, draft.integers(0, 0, draft.model.heads, -1))
    return draft.node("Transpose", split, perm=order)


def _pool(draft: _Draft, state: str) -> None:
    """Average the unmasked tokens and scale to length 1. A minimum prevents division by 0."""
    axis = draft.integers(1)
    mask = draft.node("Unsqueeze", draft.node("Cast", "mask", to=TensorProto.FLOAT), draft.integers(2))
    total = draft.node("ReduceSum", draft.node("Mul", state, mask), axis, keepdims=0)
    count = draft.node("Max", draft.node("ReduceSum", mask, axis, keepdims=0), draft.scalar(1e-9))
    mean = draft.node("Div", total, count)
    length = draft.node("ReduceL2", mean, axis, keepdims=1)
    draft.node("Div", mean, draft.node("Max", length, draft.scalar(1e-12)), output="vectors")
