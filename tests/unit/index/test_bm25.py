"""Sparse vectors: their weights are those of BM25, and their indices never change."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.search.text import bm25

TEXTS = [
    "the red kite flew over the hill",
    "a red car and a red bike",
    "quarterly report, nothing else",
    "she bought a kite on Saturday",
]


def _dot(query: bm25.SparseTerms, document: bm25.SparseTerms, idf: dict[int, float]) -> float:
    values = dict(zip(document.indices, document.values, strict=True))
    return sum(
        weight * values.get(index, 0.0) * idf.get(index, 0.0)
        for index, weight in zip(query.indices, query.values, strict=True)
    )


def test_the_dot_product_under_idf_is_bm25() -> None:
    documents = [bm25.document_vector(text) for text in TEXTS]
    indices = [index for document in documents for index in document.indices]
    idf = {
        index: math.log((len(TEXTS) - indices.count(index) + 0.5) / (indices.count(index) + 0.5) + 1)
        for index in set(indices)
    }
    query = "red kite"
    scores = [_dot(bm25.query_vector(query), document, idf) for document in documents]
    assert scores == pytest.approx(bm25.score_texts(query, TEXTS))


def test_the_index_of_a_term_never_changes() -> None:
    assert bm25.query_vector("kite").indices == [4243486356]


def test_length_hardly_matters_for_short_texts_and_lowers_long_ones() -> None:
    short, typical, long = (bm25.term_weight(1, length) for length in (3, 30, 1000))
    assert typical == pytest.approx(1.0)
    assert short > typical > long > 0
    assert short < 1.3 * typical


def test_a_repeated_word_weighs_more_up_to_a_bound() -> None:
    once, repeated, many = (bm25.term_weight(count, 30) for count in (1, 5, 10_000))
    assert once < repeated < many < bm25.K1 + 1


def test_a_text_without_a_word_has_an_empty_vector() -> None:
    assert bm25.document_vector(" … !") == bm25.SparseTerms([], [])
    assert bm25.query_vector("?") == bm25.SparseTerms([], [])


@given(st.text())
def test_indices_are_distinct_rising_and_fit_32_bits(text: str) -> None:
    vector = bm25.document_vector(text)
    assert vector.indices == sorted(set(vector.indices))
    assert all(0 <= index < 2**32 for index in vector.indices)
    assert len(vector.values) == len(vector.indices)
    assert all(value > 0 for value in vector.values)


def test_scores_of_texts_are_zero_only_without_a_term_of_the_query() -> None:
    scores = bm25.score_texts("kites", TEXTS)
    assert [score > 0 for score in scores] == [True, False, False, True]
    assert bm25.score_texts("kite", ["kite"])[0] > 0
    assert bm25.score_texts("kite", []) == []
