"""MM7: what is uploaded, what is refused while it is sent, and what an upload is the same as."""

import asyncio
import re
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path

import pytest
from sqlalchemy import update

from shared.foundation import errors
from shared.foundation.stages import PARSE_DOCUMENT, RecordKind
from shared.jobs import queries as job_queries
from shared.jobs.table import job
from shared.lifecycle import upload_document
from shared.memory.documents.document import MAX_FILE_BYTES
from shared.memory.documents.files import store as file_stores
from tests.badinput import problem
from tests.integration.documents.conftest import DOCUMENTS, Library
from workers.sweep import jobs as sweep_jobs

FORM = "multipart/form-data; boundary=b"


async def test_an_upload_is_answered_before_it_is_parsed_and_says_how_far_it_is(library: Library) -> None:
    uploaded = await library.upload("The office opens at nine.", title="Office", source="wiki/office")
    assert (uploaded["state"], uploaded["progress"], uploaded["searchable"]) == ("pending", 0.0, False)
    assert await library.texts("office") == []
    status = await library.agent.request("GET", "/v1/status")
    assert status["pending"]["documents"] == 1

    await library.process()
    ready = await library.get(uploaded["id"])
    assert (ready["state"], ready["progress"], ready["searchable"]) == ("ready", 1.0, True)
    assert (ready["title"], ready["source"], ready["chunk_count"]) == ("Office", "wiki/office", 1)
    assert ready["media_type"] == "text/plain"
    listed = await library.agent.request("GET", DOCUMENTS, params={"state": "ready"})
    assert listed["results"] == [ready]


async def test_the_same_bytes_give_the_same_document_and_are_stored_once(library: Library) -> None:
    first = await library.add("The office opens at nine.", "a.txt")
    repeated = await library.upload("The office opens at nine.", "b.txt", source="wiki/office")
    assert repeated["id"] == first["id"]
    assert (repeated["state"], repeated["source"]) == ("ready", "a.txt")
    assert (repeated["other_sources"], "replaced" in repeated) == (["wiki/office"], False)
    assert (await library.rows())["document_file"] == 1


async def test_of_many_who_upload_the_same_at_once_one_document_and_one_file_are_left(
    library: Library,
) -> None:
    documents = await asyncio.gather(*[library.upload("The same for all.", source="s") for _ in range(8)])
    assert len({document["id"] for document in documents}) == 1
    await library.process()
    assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}


async def test_a_file_whose_process_died_before_it_stored_the_document_is_deleted(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(upload_document, "_store", die)
        assert (await library.send("Lost on its way.")).status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert (await library.rows())["document_file"] == 1
    await library.process()
    assert (await library.rows())["document_file"] == 0


async def test_a_file_that_a_removal_is_after_is_not_kept(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its removal became due while it was being stored, which takes far longer than an upload may."""
    put = file_stores._Files.put

    async def be_slow(self: file_stores._Files, tenant: str, name: str, content: Path) -> None:
        await put(self, tenant, name, content)
        await library.process()

    monkeypatch.setattr(file_stores._Files, "put", be_slow)
    assert (await library.send("Too late.")).status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert await library.rows() == {"document_chunk": 0, "document_file": 0, "points": 0}


async def test_a_file_over_the_limit_is_refused_while_it_is_sent(library: Library) -> None:
    """Nothing after the limit is read, whatever the sender says of the length."""
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        while sent < 2 * MAX_FILE_BYTES:
            sent += 1024 * 1024
            yield b"x" * 1024 * 1024
        yield b"\r\n--b--\r\n"

    headers = {"content-type": FORM}
    response = await library.gateway.client.post(DOCUMENTS, content=body(), headers=headers)
    assert response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE, response.text
    assert sent <= MAX_FILE_BYTES + 2 * 1024 * 1024
    assert (await library.rows())["document_file"] == 0


async def test_a_file_of_just_the_limit_is_taken(library: Library) -> None:
    response = await library.send(b"\0" * MAX_FILE_BYTES)
    assert response.status_code == HTTPStatus.ACCEPTED, response.text
    assert response.json()["size_bytes"] == MAX_FILE_BYTES
    assert (await library.send(b"\0" * (MAX_FILE_BYTES + 1))).status_code == 413


def part(name: str, content: str, options: str = "") -> str:
    return f'--b\r\nContent-Disposition: form-data; name="{name}"{options}\r\n\r\n{content}\r\n'


@pytest.mark.parametrize(
    ("body", "field", "rule"),
    [
        (part("title", "t") + "--b--\r\n", "file", "must be given"),
        (part("file", "") + "--b--\r\n", "file", "empty"),
        (part("file", "x"), "body", "ends before"),
        (part("file", "x") + part("file", "y") + "--b--\r\n", "file", "twice"),
        (part("file", "x") + part("sauce", "y") + "--b--\r\n", "body", "no others"),
        (part("file", "x") + part("title", " ") + "--b--\r\n", "title", "blank"),
        (part("file", "x") + part("source", "a\nb") + "--b--\r\n", "source", ""),
        ("no form at all", "body", "form"),
        (f"--b\r\nContent-Disposition: {'x' * 9000}\r\n\r\n", "body", "form"),
    ],
)
async def test_a_form_that_breaks_a_rule_is_refused_by_name(
    library: Library, body: str, field: str, rule: str
) -> None:
    response = await library.gateway.client.post(DOCUMENTS, content=body, headers={"content-type": FORM})
    assert response.status_code in (413, 422), response.text
    assert field in response.json()["detail"]
    assert rule in response.json()["detail"]
    assert (await library.rows())["document_file"] == 0


async def test_another_body_than_a_form_is_a_415(library: Library) -> None:
    response = await library.gateway.client.post(DOCUMENTS, json={"file": "x"})
    assert problem.parse_problem(response)["status"] == HTTPStatus.UNSUPPORTED_MEDIA_TYPE


async def test_the_name_of_a_file_is_no_path(library: Library) -> None:
    uploaded = await library.upload("Anything.", "../../etc/C:\\secret\\plan.txt")
    assert (uploaded["file_name"], uploaded["title"]) == ("plan.txt", "plan.txt")


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ('; filename="Über 漢字 😀.md"', "Über 漢字 😀.md"),
        ("; filename=\"=?utf-8?B?w5w=?=\"; filename*=utf-8''%C3%9Cber.md", "Über.md"),
        ("; filename*=UTF-8''..%2F%E6%BC%A2.md", "漢.md"),
        ("; filename*=ISO-8859-1'de'Gr%FC%DFe.md", "Grüße.md"),
        ("; filename*0*=UTF-8''%C3%9C; filename*1=ber; filename*2*=%20alles.md", "Über alles.md"),
        ("; filename*=idna''plan.md", "plan.md"),
        ("; filename*=nonsense''Gr%C3%BC%C3%9Fe.md", "Grüße.md"),
        ('; filename="a \\"quoted\\"; name.md"', 'a "quoted"; name.md'),
    ],
)
async def test_the_name_of_a_file_has_the_letters_of_any_language(
    library: Library, option: str, name: str
) -> None:
    body = (part("file", name, option) + "--b--\r\n").encode()
    response = await library.gateway.client.post(DOCUMENTS, content=body, headers={"content-type": FORM})
    assert response.status_code == HTTPStatus.ACCEPTED, response.text
    assert response.json()["file_name"] == name


async def test_a_file_name_that_is_no_utf_8_is_read_as_latin_1(library: Library) -> None:
    body = part("file", "x", '; filename="Gr\u00fc\u00dfe.md"').encode("latin-1") + b"--b--\r\n"
    response = await library.gateway.client.post(DOCUMENTS, content=body, headers={"content-type": FORM})
    assert response.json()["file_name"] == "Gr\u00fc\u00dfe.md"


async def test_a_file_without_text_fails_with_its_reason_and_is_tried_again_when_it_is_sent_again(
    library: Library,
) -> None:
    failed = await library.add(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8, "picture.png")
    assert (failed["state"], failed["reason_code"]) == ("failed", "unsupported")
    assert failed["reason"]
    repeated = await library.upload(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8, "picture.png")
    assert (repeated["id"], repeated["state"], repeated["reason"]) == (failed["id"], "pending", None)
    metrics = (await library.gateway.client.get("/metrics")).text
    assert re.search(r'loci_documents_total{kind="unsupported"} [1-9]', metrics)


async def test_a_file_that_ends_its_worker_too_often_fails_with_that_reason(library: Library) -> None:
    uploaded = await library.upload("Poison.")
    resources = library.gateway.resources
    async with resources.postgres.for_tenant(library.gateway.tenant) as tx:
        claimed = await job_queries.get_unclaimed(tx, RecordKind.DOCUMENT, uploaded["id"], PARSE_DOCUMENT)
        used_up = {"attempts": resources.settings.job_max_attempts}
        await tx.execute(update(job).where(job.c.id == claimed.id).values(used_up))
    assert await sweep_jobs.fail_exhausted_jobs(resources) == 1
    failed = await library.get(uploaded["id"])
    assert (failed["state"], failed["reason_code"]) == ("failed", "exhausted")
    assert "ended 5 times" in failed["reason"]


async def test_while_the_file_store_is_away_nothing_is_lost(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploaded = await library.upload("The office opens at nine.")

    def be_away(*_: object) -> None:
        raise errors.Unavailable("s3", "it is away")

    with monkeypatch.context() as patched:
        patched.setattr(file_stores._Files, "open", be_away)
        await library.process()
    assert (await library.get(uploaded["id"]))["state"] == "processing"
    await library.process()
    assert (await library.get(uploaded["id"]))["state"] == "ready"


async def test_a_deleted_document_leaves_nothing(library: Library) -> None:
    added = await library.add("The office opens at nine.")
    waiting = await library.upload("The canteen opens at noon.")
    for document in (added, waiting):
        path = f"{DOCUMENTS}/{document['id']}"
        deleted = await library.agent.request("DELETE", path)
        assert (deleted["id"], deleted["deleted"], deleted["state"]) == (document["id"], True, "done")
        assert not (await library.agent.request("DELETE", path))["deleted"]
        await library.agent.request("GET", path, status=HTTPStatus.NOT_FOUND)
    assert await library.texts("office canteen opens") == []
    await library.process()
    assert await library.rows() == {"document_chunk": 0, "document_file": 0, "points": 0}
    status = await library.agent.request("GET", "/v1/status")
    assert status["pending"]["documents"] == 0


async def test_a_bound_key_reads_and_searches_and_writes_nothing(library: Library) -> None:
    added = await library.add("The office opens at nine.")
    for binding in ({"agent_id": "support"}, {"user_id": "ada"}):
        async with await library.gateway.new_client(**binding) as client:
            found = (await client.post(f"{DOCUMENTS}/search", json={"query": "office"})).json()["results"]
            assert [result["document_id"] for result in found] == [added["id"]]
            assert (await client.get(DOCUMENTS)).json()["results"] == [added]
            assert (await library.send("x", client=client)).status_code == HTTPStatus.FORBIDDEN
            response = await client.delete(f"{DOCUMENTS}/{added['id']}")
            assert response.status_code == HTTPStatus.FORBIDDEN
