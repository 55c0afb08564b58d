"""Which name an endpoint's model is asked by: the one that is set, else that of its only model."""

import json
import threading
from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from shared.foundation import errors
from shared.foundation.stages import ReasonCode
from shared.infra.model_endpoint import ModelEndpoint
from shared.infra.model_name import ModelName

Answer = tuple[int, object]
Lists = Callable[..., ModelName]
UNKNOWN = errors.ModelRefused("embedding endpoint", "status 404", ReasonCode.MODEL_UNKNOWN)
KEY_REFUSED = errors.ModelRefused("embedding endpoint", "status 401", ReasonCode.KEY_REFUSED)


def listing(*names: str) -> Answer:
    return 200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}


@pytest.fixture
async def lists() -> AsyncIterator[Lists]:
    """Return a function that names the model of an endpoint with these answers, the last one for ever."""
    answers: list[Answer] = []
    endpoints: list[ModelEndpoint] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = answers.pop(0) if len(answers) > 1 else answers[0]
            body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,)).start()

    def name_at(*given: Answer, configured: str | None = None) -> ModelName:
        answers[:] = given
        url = f"http://127.0.0.1:{server.server_port}/v1"
        endpoints.append(ModelEndpoint("embedding endpoint", url, None, 5))
        return ModelName(endpoints[-1], configured)

    yield name_at
    for endpoint in endpoints:
        await endpoint.close()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (listing("minilm"), "minilm"),
        (listing("minilm", "e5"), "default"),
        (listing(), "default"),
        ((404, {"detail": "Not Found"}), "default"),
        ((403, {}), "default"),
        ((405, ""), "default"),
        ((200, "<html>"), "default"),
        ((200, {"data": [None, {"id": 3}, {"id": ""}]}), "default"),
    ],
)
async def test_an_endpoint_is_asked_for_its_only_model_and_otherwise_for_any(
    lists: Lists, answer: Answer, expected: str
) -> None:
    name = lists(answer)
    assert (name.known, name.last_known) == (None, "default")
    assert await name.find() == expected
    assert name.known == expected


@pytest.mark.parametrize("answer", [(401, {}), (503, {}), (429, {})])
async def test_an_endpoint_that_cannot_tell_now_is_asked_again(lists: Lists, answer: Answer) -> None:
    name = lists(answer, listing("minilm"))
    with pytest.raises(errors.Unavailable):
        await name.find()
    assert await name.find() == "minilm"


async def test_an_endpoint_that_listed_nothing_is_asked_again_when_it_refuses_the_name(lists: Lists) -> None:
    name = lists((404, {}), listing("minilm"), listing("e5"))
    assert await name.find() == "default"
    name.note_refusal(KEY_REFUSED)
    assert await name.find() == "default"
    name.note_refusal(UNKNOWN)
    assert await name.find() == "minilm"
    name.note_refusal(UNKNOWN)
    assert await name.find() == "minilm", "vectors of two models would meet in one generation"


async def test_a_name_that_is_set_is_never_replaced(lists: Lists) -> None:
    for configured in ("e5", "default"):
        name = lists(listing("minilm"), configured=configured)
        name.note_refusal(UNKNOWN)
        assert await name.find() == configured
