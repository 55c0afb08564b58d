"""The encoder computes the same vectors as plain formulas, whatever the batches."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.local.embeddings import graph, model
from services.local.embeddings.encoder import Encoder, cut_batches
from tests.unit.local.embeddings import tiny_bert
from tests.unit.local.embeddings.tiny_bert import MAX_TOKENS, TinyBert

TEXTS = ["the cat sat on a mat", "dogs", "The CAT", "a dog ran far", "unheard words", "and away"]


def _ids(text: str) -> list[int]:
    tokenizer = tiny_bert.tokenizer()
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer.encode(text).ids


def test_vectors_equal_the_plain_numpy_model(encoder: Encoder, tiny: TinyBert) -> None:
    encoded = asyncio.run(encoder.encode(TEXTS))
    expected = np.stack([tiny.vector(_ids(text)) for text in TEXTS])
    np.testing.assert_allclose(encoded.vectors, expected, atol=1e-5)


def test_different_texts_get_different_vectors(encoder: Encoder) -> None:
    vectors = asyncio.run(encoder.encode(TEXTS)).vectors
    cosines = vectors @ vectors.T - np.eye(len(TEXTS))
    assert cosines.max() < 0.999


def test_every_vector_has_length_one(encoder: Encoder) -> None:
    vectors = asyncio.run(encoder.encode(TEXTS)).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_gets_the_same_vector_alone_and_padded_in_a_batch(encoder: Encoder) -> None:
    alone = asyncio.run(encoder.encode(["dogs"])).vectors[0]
    padded = asyncio.run(encoder.encode(["the cat sat on a mat", "dogs"])).vectors[1]
    np.testing.assert_allclose(alone, padded, atol=1e-5)


def test_vectors_are_in_the_order_of_the_texts_over_many_batches(encoder: Encoder) -> None:
    texts = [" ".join(tiny_bert.WORDS[4 : 5 + n % 7]) for n in range(500)]
    vectors = asyncio.run(encoder.encode(texts)).vectors
    by_text = {text: asyncio.run(encoder.encode([text])).vectors[0] for text in set(texts)}
    np.testing.assert_allclose(vectors, np.stack([by_text[text] for text in texts]), atol=1e-5)


def test_text_beyond_the_models_limit_is_not_read_and_not_counted(encoder: Encoder) -> None:
    fitting = " ".join(["cat"] * (MAX_TOKENS - 2))
    whole, cut_off = (asyncio.run(encoder.encode([text])) for text in (fitting, fitting + " dog ran away"))
    np.testing.assert_array_equal(whole.vectors, cut_off.vectors)
    assert cut_off.tokens == MAX_TOKENS


def test_tokens_of_all_texts_are_counted_without_padding(encoder: Encoder) -> None:
    assert asyncio.run(encoder.encode(["cat", "the cat sat"])).tokens == 3 + 5


def test_concurrent_requests_do_not_mix_their_texts(encoder: Encoder) -> None:
    async def many() -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
        return [
            encoded.vectors
            for encoded in await asyncio.gather(*(encoder.encode([text] * 9) for text in TEXTS))
        ]

    singles = asyncio.run(encoder.encode(TEXTS)).vectors
    for expected, vectors in zip(singles, asyncio.run(many()), strict=True):
        np.testing.assert_allclose(vectors, np.tile(expected, (9, 1)), atol=1e-5)


def test_the_graph_is_built_once_and_then_read_from_the_cache(
    tiny: TinyBert, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model = model.find(tiny.folder)
    Encoder(tiny_model, tmp_path).close()
    monkeypatch.setattr(graph, "build", None)
    Encoder(tiny_model, tmp_path).close()
    assert [file.suffix for file in tmp_path.iterdir()] == [".onnx"]


def test_a_missing_tensor_is_named_in_the_error(tiny: TinyBert) -> None:
    weights = {name: tensor.astype(np.float32) for name, tensor in tiny.weights.items()}
    del weights["encoder.layer.1.output.dense.bias"]
    with pytest.raises(KeyError, match=r"encoder\.layer\.1\.output\.dense\.bias"):
        graph.build(model.find(tiny.folder), weights)


@given(st.lists(st.integers(1, 256), max_size=200), st.integers(1, 2000))
def test_batches_contain_every_row_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = cut_batches(lengths, budget)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= budget
