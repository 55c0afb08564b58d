"""A BERT of a few hundred random numbers on disk, and the same model in plain numpy.

The reference follows the paper's formulas, one text at a time and without padding, so that it has
nothing in common with the graph that it checks.
"""

import json
from dataclasses import dataclass
from math import erf, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

Array = NDArray[np.float64]

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "##s"]
WORDS += ["the", "cat", "sat", "on", "a", "mat", "and", "dog", "ran", "far", "away"]
DIMENSION, HEADS, LAYERS, INNER, POSITIONS, EPSILON = 12, 3, 2, 20, 16, 1e-6
MAX_TOKENS = 8


@dataclass(frozen=True)
class TinyBert:
    """The folder and, for the reference, its tensors in double precision."""

    folder: Path
    weights: dict[str, Array]

    def vector(self, ids: list[int]) -> Array:
        """Return the sentence vector of one text's token ids."""
        state = self._embed(ids)
        for layer in range(LAYERS):
            state = self._layer(state, f"encoder.layer.{layer}")
        mean: Array = state.mean(axis=0)
        return mean / float(np.linalg.norm(mean))

    def _embed(self, ids: list[int]) -> Array:
        words = self.weights["embeddings.word_embeddings.weight"][ids]
        positions = self.weights["embeddings.position_embeddings.weight"][: len(ids)]
        kinds = self.weights["embeddings.token_type_embeddings.weight"][0]
        return self._norm(words + positions + kinds, "embeddings.LayerNorm")

    def _layer(self, state: Array, prefix: str) -> Array:
        attended = self._dense(self._attend(state, prefix), f"{prefix}.attention.output.dense")
        state = self._norm(state + attended, f"{prefix}.attention.output.LayerNorm")
        inner = _gelu(self._dense(state, f"{prefix}.intermediate.dense"))
        return self._norm(state + self._dense(inner, f"{prefix}.output.dense"), f"{prefix}.output.LayerNorm")

    def _attend(self, state: Array, prefix: str) -> Array:
        size = DIMENSION // HEADS
        query, key, value = (
            self._dense(state, f"{prefix}.attention.self.{part}") for part in ("query", "key", "value")
        )
        mixed = []
        for head in range(HEADS):
            own = slice(head * size, (head + 1) * size)
            scores = np.exp(query[:, own] @ key[:, own].T / sqrt(size))
            mixed.append(scores / scores.sum(axis=1, keepdims=True) @ value[:, own])
        return np.concatenate(mixed, axis=1)

    def _dense(self, state: Array, name: str) -> Array:
        product: Array = state @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return product

    def _norm(self, state: Array, name: str) -> Array:
        centred = state - state.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
        result: Array = scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return result


def write(folder: Path) -> TinyBert:
    """Write the model into `folder` in Hugging Face layout and return it."""
    random = np.random.default_rng(7)
    weights = {name: _tensor(random, name, shape) for name, shape in _shapes().items()}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config()))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": MAX_TOKENS}))
    tokenizer().save(str(folder / "tokenizer.json"))
    return TinyBert(folder, {name: tensor.astype(np.float64) for name, tensor in weights.items()})


def config() -> dict[str, object]:
    """Return the model's config.json."""
    return {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": DIMENSION,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "max_position_embeddings": POSITIONS,
        "layer_norm_eps": EPSILON,
    }


def tokenizer() -> Tokenizer:
    """Return a tokenizer with padding and truncation for training, like the packaged one."""
    wordpiece = Tokenizer(
        models.WordPiece({word: position for position, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    wordpiece.normalizer = normalizers.BertNormalizer()
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    wordpiece.enable_padding(length=5)
    wordpiece.enable_truncation(5)
    return wordpiece


def _tensor(random: np.random.Generator, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return a random tensor. Biases are small, because large ones alone would decide every vector."""
    return random.normal(0, 0.1 if name.endswith("bias") else 1, shape).astype(np.float32)


def _shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), DIMENSION),
        "embeddings.position_embeddings.weight": (POSITIONS, DIMENSION),
        "embeddings.token_type_embeddings.weight": (2, DIMENSION),
        "embeddings.LayerNorm.weight": (DIMENSION,),
        "embeddings.LayerNorm.bias": (DIMENSION,),
    }
    for layer in range(LAYERS):
        shapes |= _layer_shapes(f"encoder.layer.{layer}")
    return shapes


def _layer_shapes(prefix: str) -> dict[str, tuple[int, ...]]:
    square, narrow = (DIMENSION, DIMENSION), (DIMENSION,)
    parts: dict[str, tuple[int, ...]] = {
        "intermediate.dense.weight": (INNER, DIMENSION),
        "intermediate.dense.bias": (INNER,),
        "output.dense.weight": (DIMENSION, INNER),
        "output.dense.bias": narrow,
    }
    for name in ("self.query", "self.key", "self.value", "output.dense"):
        parts |= {f"attention.{name}.weight": square, f"attention.{name}.bias": narrow}
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        parts |= {f"{name}.weight": narrow, f"{name}.bias": narrow}
    return {f"{prefix}.{name}": shape for name, shape in parts.items()}


def _gelu(value: Array) -> Array:
    share: Array = np.vectorize(lambda x: 0.5 * (1 + erf(x / sqrt(2))))(value)
    return value * share
