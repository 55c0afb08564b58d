"""A Qdrant that refuses the API key is an index that is missing, with its own reason, and no error."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from shared.foundation import config, errors
from shared.infra.qdrant import Qdrant
from tests.conftest import Gateway, running_gateway
from workers.sweep.jobs import dispatch_due_jobs
from workers.sweep.sweep import sweep_once

REASON = "qdrant is unavailable: it refuses the API key (LOCI_QDRANT_API_KEY)"


@pytest.fixture(params=[401, 403])
def refusing_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server that refuses every request, but tells its version, as Qdrant does."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(length)
            is_open = self.path == "/"
            body = b'{"title": "qdrant", "version": "1.13.0"}' if is_open else b'{"status": "forbidden"}'
            self.send_response(200 if is_open else request.param)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
async def refused(
    make_settings: Callable[..., config.Settings], refusing_url: str, tenant: str
) -> AsyncIterator[Gateway]:
    settings = make_settings(apart=True).model_copy(update={"qdrant_url": refusing_url})
    async with running_gateway(settings, tenant) as gateway:
        yield gateway


async def test_a_gateway_starts_and_serves_without_the_index(refused: Gateway) -> None:
    client = refused.client
    saved = await client.post("/v1/memories", json={"content": "Ada likes trains.", "enrich": False})
    assert saved.status_code == 201, saved.text
    found = (await client.post("/v1/memories/search", json={"query": "trains"})).json()
    assert [result["content"] for result in found["results"]] == ["Ada likes trains."]
    assert "index" in found["degraded"]
    session = (await client.post("/v1/sessions", json={})).json()["id"]
    context = await client.post(f"/v1/sessions/{session}/context", json={"message": "trains?"})
    assert context.status_code == 200, context.text
    assert "index" in context.json()["degraded"]
    ready = await client.get("/readyz")
    assert ready.status_code == 200
    assert "LOCI_QDRANT_API_KEY" in ready.json()["stores"]["qdrant"]


async def test_the_sweep_and_the_dispatch_go_on(refused: Gateway) -> None:
    await sweep_once(refused.resources)
    await dispatch_due_jobs(refused.resources)


async def test_a_refused_key_is_noticed_although_the_version_is_public(refusing_url: str) -> None:
    qdrant = Qdrant(config.load(qdrant_url=refusing_url))
    with pytest.raises(errors.Unavailable) as caught:
        await qdrant.version()
    assert str(caught.value).startswith(REASON)
    await qdrant.close()
