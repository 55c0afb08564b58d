"""The stand-in's vectors have a meaning, and can be wrong in every known way."""

import base64
import math

import numpy as np
import pytest

from tests.standins import vectors
from tests.standins.behaviours import (
    NotANumber,
    RepeatedIndex,
    Shuffled,
    Status,
    Vectors,
    WrongCount,
    WrongDimension,
    ZeroVector,
)
from tests.standins.models import ModelServer
from tests.unit.standins.conftest import Caller


def test_texts_that_share_words_are_nearer_than_others(caller: Caller) -> None:
    tea, more_tea, train = caller.vectors("I like green tea", "Green TEA, please!", "the train is late")
    assert np.dot(tea, more_tea) > 0.4 > np.dot(tea, train)


def test_vectors_have_length_one_and_do_not_change() -> None:
    vector = vectors.embed("green tea", 4)
    assert math.isclose(np.linalg.norm(vector), 1)
    assert vector == vectors.embed("Tea green", 4)


@pytest.mark.parametrize("text", ["", " ", "?!", "日本", "\ud800"])
def test_any_text_has_a_vector(text: str) -> None:
    assert math.isclose(np.linalg.norm(vectors.embed(text, 16)), 1)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_no_vector_is_zero_even_where_words_cancel_out(dimension: int) -> None:
    lengths = [np.linalg.norm(vectors.embed(f"one {n}", dimension)) for n in range(100)]
    np.testing.assert_allclose(lengths, 1)


def test_an_answer_has_openais_shape(caller: Caller) -> None:
    answer = caller.embed("green tea", "coffee").json()
    assert [item["index"] for item in answer["data"]] == [0, 1]
    assert {item["object"] for item in answer["data"]} == {"embedding"}
    assert answer["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    assert answer["model"] == "e"


def test_a_single_text_needs_no_list(caller: Caller) -> None:
    answer = caller.http.post("/embeddings", json={"model": "e", "input": "tea"}).json()
    assert [item["embedding"] for item in answer["data"]] == caller.vectors("tea")


def test_the_dimension_is_the_servers_or_the_requests(server: ModelServer, caller: Caller) -> None:
    server.dimension = 8
    assert len(caller.vectors("tea")[0]) == 8
    assert len(caller.vectors("tea", dimensions=5)[0]) == 5


def test_base64_holds_the_same_numbers(caller: Caller) -> None:
    coded = caller.embed("tea", encoding_format="base64").json()["data"][0]["embedding"]
    np.testing.assert_allclose(
        np.frombuffer(base64.b64decode(coded), "<f4"), caller.vectors("tea")[0], rtol=1e-6
    )


def test_another_space_gives_other_vectors(server: ModelServer, caller: Caller) -> None:
    old = caller.vectors("green tea")[0]
    server.embedding_default = Vectors(space="other")
    assert abs(np.dot(old, caller.vectors("green tea")[0])) < 0.9


def test_the_dimension_can_be_wrong(server: ModelServer, caller: Caller) -> None:
    server.embedding_default = WrongDimension(by=-2)
    assert len(caller.vectors("tea")[0]) == server.dimension - 2


@pytest.mark.parametrize("by", [-2, -1, 1, 3])
def test_the_count_can_be_wrong(server: ModelServer, caller: Caller, by: int) -> None:
    server.embedding_default = WrongCount(by)
    assert len(caller.vectors("a", "b", "c")) == 3 + by


def test_a_vector_can_contain_values_that_are_not_numbers(server: ModelServer, caller: Caller) -> None:
    server.embedding_replies.extend([NotANumber(index=1), NotANumber("-Infinity"), NotANumber(None)])
    first, second = caller.vectors("a", "b")
    assert math.isnan(second[0])
    assert not any(map(math.isnan, first))
    assert caller.vectors("a")[0][0] == -math.inf
    assert caller.vectors("a")[0][0] is None


def test_a_vector_can_be_zero(server: ModelServer, caller: Caller) -> None:
    server.embedding_default = ZeroVector(index=1)
    first, second = caller.vectors("a", "b")
    assert any(first)
    assert not any(second)


def test_a_shuffled_answer_is_right_by_its_index(server: ModelServer, caller: Caller) -> None:
    straight = caller.vectors("a", "b", "c")
    server.embedding_default = Shuffled()
    data = caller.embed("a", "b", "c").json()["data"]
    assert [item["index"] for item in data] == [2, 1, 0]
    assert [item["embedding"] for item in sorted(data, key=lambda item: item["index"])] == straight


def test_an_index_can_repeat(server: ModelServer, caller: Caller) -> None:
    server.embedding_default = RepeatedIndex()
    for texts in (("a", "b"), ("a",)):
        assert [item["index"] for item in caller.embed(*texts).json()["data"]] == [0, 0]


def test_usage_can_be_left_out(server: ModelServer, caller: Caller) -> None:
    server.embedding_default = Vectors(usage=None)
    assert "usage" not in caller.embed("a").json()


def test_the_plan_of_one_path_leaves_the_other_alone(server: ModelServer, caller: Caller) -> None:
    server.embedding_replies.append(Status(500))
    assert caller.chat_text() == "ok"
    assert caller.embed("a").status_code == 500
