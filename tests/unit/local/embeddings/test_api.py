"""The server uses OpenAI's formats for responses and errors."""

import asyncio
import base64
from typing import Any

import httpx
import numpy as np
import pytest

from services.local.embeddings import api
from services.local.embeddings.encoder import Encoder


class Client:
    """Sends requests to the application in this process."""

    def __init__(self, encoder: Encoder) -> None:
        self._app = api.create_app(encoder)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send one request and return the response."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://local") as client:
                return await client.request(method, path, **options)

        return asyncio.run(send())

    def embed(self, **body: object) -> httpx.Response:
        """Request embeddings of the tiny model, unless `body` names another."""
        return self.ask("POST", "/v1/embeddings", json={"model": "tiny", **body})


@pytest.fixture
def client(encoder: Encoder) -> Client:
    """Return a client of the tiny model's server."""
    return Client(encoder)


def test_the_response_to_a_single_text_has_openais_format(client: Client, encoder: Encoder) -> None:
    answer = client.embed(input="the cat").json()
    vector = answer["data"][0].pop("embedding")
    assert answer == {
        "object": "list",
        "data": [{"object": "embedding", "index": 0}],
        "model": "tiny",
        "usage": {"prompt_tokens": 4, "total_tokens": 4},
    }
    np.testing.assert_allclose(vector, asyncio.run(encoder.encode(["the cat"])).vectors[0], atol=1e-6)


def test_the_response_to_a_list_is_in_its_order(client: Client) -> None:
    answer = client.embed(input=["a dog", "the cat sat", "a dog"]).json()
    assert [item["index"] for item in answer["data"]] == [0, 1, 2]
    first, second, third = (item["embedding"] for item in answer["data"])
    np.testing.assert_allclose(first, third, atol=1e-6)
    assert np.dot(first, second) < 0.999


def test_base64_encodes_the_same_numbers_as_floats(client: Client) -> None:
    floats = client.embed(input="the cat").json()["data"][0]["embedding"]
    text = client.embed(input="the cat", encoding_format="base64").json()["data"][0]["embedding"]
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(text), "<f4"), floats, atol=1e-6)


def test_a_publishers_prefix_names_the_same_model(client: Client) -> None:
    assert client.embed(input="the cat", model="sentence-transformers/tiny").status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"input": "cat", "model": "text-embedding-3-small"}, 404, "model"),
        ({"input": "cat", "dimensions": 12}, 400, "dimensions"),
        ({"input": ""}, 400, "input"),
        ({"input": []}, 400, "input"),
        ({"input": ["cat", ""]}, 400, "input"),
        ({"input": [1, 2, 3]}, 400, "input"),
        ({"input": ["cat"] * (api.MAX_TEXTS + 1)}, 400, "input"),
        ({"input": None}, 400, "input"),
        ({}, 400, "input"),
        ({"input": "cat", "encoding_format": "hex"}, 400, "encoding_format"),
    ],
)
def test_an_invalid_request_is_refused_with_the_name_of_the_parameter(
    client: Client, body: dict[str, object], status: int, param: str
) -> None:
    answer = client.embed(**body)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["param"]) == (status, "invalid_request_error", param)
    assert error["message"]


def test_dimensions_are_refused_with_openais_message(client: Client) -> None:
    error = client.embed(input="cat", dimensions=12).json()["error"]
    assert error["message"] == "This model does not support specifying dimensions."


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff"])
def test_a_body_that_is_no_json_object_is_refused(client: Client, body: bytes) -> None:
    answer = client.ask("POST", "/v1/embeddings", content=body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_body_over_the_limit_is_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MAX_BODY", 100)
    assert client.embed(input="cat " * 100).status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/v1/embeddings", 405), ("POST", "/v1/chat/completions", 404)]
)
def test_other_paths_return_errors_in_the_same_format(
    client: Client, method: str, path: str, status: int
) -> None:
    answer = client.ask(method, path)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_an_internal_error_is_a_500_in_the_same_format(
    client: Client, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "_session", None)
    answer = client.embed(input="cat")
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "server_error")


def test_the_model_is_listed(client: Client) -> None:
    assert [model["id"] for model in client.ask("GET", "/v1/models").json()["data"]] == ["tiny"]


def test_health_names_the_model_and_its_dimension(client: Client) -> None:
    answer = client.ask("GET", "/healthz")
    assert answer.json() == {"status": "ok", "model": "tiny", "dimension": 12}
