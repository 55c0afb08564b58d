"""The texts of a record and of a query that are indexed or embedded."""

import math
import time

import pytest

from shared.search.text.indexed_text import embedding_text, keyword_text, mean_vector, query_embedding_texts
from shared.search.text.tokenizer import tokenize


def test_the_keyword_text_has_speaker_content_tags_and_the_words_of_the_category() -> None:
    text = keyword_text("likes tea", speaker="Ann", category="user-likes/drink", tags=["hot"])
    assert set(tokenize(text)) >= {"ann", "tea", "hot", "user", "drink"}


def test_a_speaker_at_the_start_of_the_content_is_not_named_twice() -> None:
    assert keyword_text("Ann: likes tea", speaker="Ann") == "Ann: likes tea"


def test_the_embedding_text_has_no_speaker() -> None:
    assert embedding_text("Ann: likes tea", speaker="Ann") == "likes tea"
    assert embedding_text("Ann: likes tea") == "Ann: likes tea"
    assert embedding_text("Ann likes tea", speaker="Ann") == "Ann likes tea"
    assert embedding_text("Ann:", speaker="Ann") == "Ann:"


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("When did Caroline join the support group?", ["join support group"]),
        ("What is Caroline\u2019s plan?", ["plan"]),
        ("Who are you?", []),
        ("Wann hat Caroline die Gruppe besucht?", []),
        ("\u70e4\u9e2d", []),
    ],
)
def test_an_english_query_is_also_embedded_as_its_content_words(query: str, texts: list[str]) -> None:
    assert query_embedding_texts(query) == [query, *texts]


def test_the_mean_of_long_vectors_takes_no_time() -> None:
    """Each search with an embedder makes one. It once grew with the square of the length: 90 ms for 3072."""
    started = time.process_time()
    mean_vector([[1.0] * 20_000, [2.0] * 20_000])
    assert time.process_time() - started < 1


def test_the_mean_of_vectors_is_their_common_direction() -> None:
    assert mean_vector([[3.0, 0.0], [0.0, 5.0]]) == pytest.approx([math.sqrt(0.5), math.sqrt(0.5)])
    assert mean_vector([[3.0, 4.0]]) == [3.0, 4.0]
    assert mean_vector([[0.0, 0.0], [0.0, 0.0]]) == [0.0, 0.0]
