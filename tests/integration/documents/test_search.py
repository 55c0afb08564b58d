"""MM7: passages are found by keyword and meaning, ranked again, and cited by document and position."""

import json
from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from shared.foundation import config, errors
from shared.search.index.client import SearchIndex
from tests.integration.documents.conftest import Library, opened_library, paragraphs
from tests.integration.scratchpad.conftest import BUSINESS_CONTEXT
from tests.standins.models import ModelServer

MARKDOWN = """# Handbook

The office in Kiel opens at nine.

## Travel

Trains are booked by the front desk.
"""


async def write_agent_md(library: Library, content: str) -> None:
    version = (await library.gateway.client.get(BUSINESS_CONTEXT)).headers["etag"]
    headers = {"if-match": version}
    await library.agent.request("PUT", BUSINESS_CONTEXT, json={"content": content}, headers=headers)


async def test_a_passage_is_cited_by_its_document_its_title_and_its_lines(library: Library) -> None:
    added = await library.add(MARKDOWN, "handbook.md")
    response = await library.search("who books trains?")
    assert (response["stages"], response["degraded"]) == (["bm25", "rerank"], [])
    [result] = response["results"]
    assert "Trains are booked" in result["text"]
    assert (result["document_id"], result["title"], result["page"]) == (added["id"], "Handbook", None)
    lines = MARKDOWN.splitlines()[result["line_from"] - 1 : result["line_to"]]
    assert "Trains are booked by the front desk." in lines
    assert result["score"] > 0


async def test_agent_md_is_searched_first_and_cited_by_its_lines(library: Library) -> None:
    await library.add("Trains to Kiel: trains leave from platform seven, trains all day.", "trains.txt")
    await write_agent_md(library, "# Inn GmbH\n\nWe like tea.\n\n- Trains to Kiel are booked by Bo.")
    results = (await library.search("trains to Kiel"))["results"]
    assert [result["title"] for result in results] == ["agent.md", "trains.txt"]
    first = results[0]
    assert "booked by Bo" in first["text"]
    assert (first["document_id"], first["line_to"]) == (None, 5)
    scores = [result["score"] for result in results]
    assert scores == sorted(scores, reverse=True)
    assert [r["title"] for r in (await library.search("platform seven leave Kiel"))["results"]] == [
        "trains.txt"
    ]


async def test_no_context_recalls_a_document(library: Library) -> None:
    await library.add("The office in Kiel opens at nine.")
    session = await library.agent.session()
    context = await library.agent.context(session, "When does the office in Kiel open?")
    assert "opens at nine" not in json.dumps(context)


async def test_passages_that_say_the_same_leave_room_for_others(library: Library) -> None:
    for number in range(6):
        await library.upload(f"Refunds are paid within thirty days, copy {number}.", f"{number}.txt")
    await library.upload("Refunds over a thousand euros need the signature of Ada.", "large.txt")
    await library.process()
    texts = await library.texts("refunds", limit=3)
    assert len(texts) == 3
    assert any("signature of Ada" in text for text in texts)


async def test_without_the_index_the_words_are_searched_in_postgres(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def be_away(*_: object) -> None:
        raise errors.Unavailable("qdrant", "it is away")

    await library.add(paragraphs("harbour", 3))
    monkeypatch.setattr(SearchIndex, "search", be_away)
    response = await library.search("harbour number2")
    assert response["stages"] == ["postgres", "rerank"]
    assert response["degraded"] == ["index"]
    assert "harbour number2" in response["results"][0]["text"]


@pytest.fixture
def encoder() -> Any:
    """Serve a cross-encoder that prefers short texts, and answers nonsense while `broken`."""

    class Handler(BaseHTTPRequestHandler):
        broken = False
        calls: list[dict[str, Any]] = []

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            type(self).calls.append({"path": self.path, **body})
            texts = body["documents"]
            results = [{"index": index, "relevance_score": -len(text)} for index, text in enumerate(texts)]
            answer = json.dumps({"results": results[1:] if self.broken else results}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    Handler.url = f"http://127.0.0.1:{server.server_port}/v1"  # type: ignore[attr-defined]
    yield Handler
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_cross_encoder_decides_and_without_its_answer_the_built_in_one_does(
    make_settings: Callable[..., config.Settings], tenant: str, encoder: Any
) -> None:
    settings = make_settings(apart=True, rerank_base_url=encoder.url, rerank_model="judge")
    async with opened_library(settings, tenant) as library:
        await library.upload("Refunds, refunds and refunds: how refunds are paid to customers.", "long.txt")
        await library.upload("Refunds take a month.", "short.txt")
        await library.process()
        judged = await library.search("refunds")
        assert judged["stages"] == ["bm25", "rerank", "cross_encoder"]
        assert [result["title"] for result in judged["results"]] == ["short.txt", "long.txt"]
        [call] = encoder.calls
        assert (call["path"], call["model"], len(call["documents"])) == ("/v1/rerank", "judge", 2)
        encoder.broken = True
        fallen_back = await library.search("refunds")
    assert (fallen_back["stages"], fallen_back["degraded"]) == (["bm25", "rerank"], ["cross_encoder"])
    assert [result["title"] for result in fallen_back["results"]] == ["long.txt", "short.txt"]


@pytest.fixture
async def embedding_library(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> AsyncIterator[Library]:
    """Serve a gateway with an embedding model."""
    settings = make_settings(apart=True, embedding_base_url=models.url, embedding_model="m", job_backoff=0.01)
    async with opened_library(settings, tenant) as library:
        yield library


async def test_a_new_version_waits_for_its_embeddings_and_the_first_does_not(
    embedding_library: Library, models: ModelServer
) -> None:
    library = embedding_library
    first = await library.add("The office opens at nine.", source="wiki/office")
    assert first["state"] == "ready"
    response = await library.search("office")
    assert response["stages"] == ["bm25", "dense", "rerank"]
    models.stop()
    await library.upload("The office opens at ten.", source="wiki/office")
    await library.process()
    waiting = await library.get(first["id"])
    assert (waiting["state"], waiting["searchable"]) == ("processing", True)
    assert await library.texts("office") == ["The office opens at nine."]
    models.start()
    await library.process()
    await library.process()
    assert (await library.get(first["id"]))["state"] == "ready"
    assert await library.texts("office") == ["The office opens at ten."]
