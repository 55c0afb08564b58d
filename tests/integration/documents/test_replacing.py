"""MM7: a changed document is found in one version at every moment, whatever happens to its worker."""

import asyncio
import re
import signal
from collections.abc import Iterator
from http import HTTPStatus

import pytest

from tests.integration.documents.conftest import DOCUMENTS, Library, paragraphs
from tests.killing import Kill, killing_process
from workers.documents import process as processing

SOURCE = "wiki/harbour"
CHUNKS = 3


async def test_another_file_of_the_same_source_replaces_the_text_and_keeps_the_id(library: Library) -> None:
    old = await library.add(paragraphs("old harbour", 4), "a.txt", title="Harbour", source=SOURCE)
    new = await library.upload(paragraphs("new harbour", 2), "b.txt", source=SOURCE)
    assert (new["id"], new["version"], new["title"]) == (old["id"], 2, "Harbour")
    assert (new["state"], new["searchable"]) == ("pending", True)
    assert ["old harbour" in text for text in await library.texts("harbour")] == [True] * 4
    await library.process()
    texts = await library.texts("harbour")
    assert len(texts) == 2
    assert all("new harbour" in text for text in texts)
    assert await library.rows() == {"document_chunk": 2, "document_file": 1, "points": 2}


async def test_a_source_that_changes_into_the_bytes_of_another_joins_its_document(library: Library) -> None:
    first = await library.add("The office opens at nine.", source="a")
    other = await library.add("The office opens at ten.", source="b")
    changed = await library.upload("The office opens at nine.", source="b")
    assert (changed["id"], changed["other_sources"], changed["version"]) == (first["id"], ["b"], 1)
    assert await library.texts("office opens") == ["The office opens at nine."]
    await library.agent.request("GET", f"{DOCUMENTS}/{other['id']}", status=HTTPStatus.NOT_FOUND)
    await library.process()
    assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}


async def test_a_source_is_found_by_its_old_text_until_the_document_that_it_joins_is_found(
    library: Library,
) -> None:
    old = await library.add("The office opens at ten.", source="b")
    waiting = await library.upload("The office opens at nine.", source="a")
    joined = await library.upload("The office opens at nine.", source="b")
    assert (joined["id"], joined["other_sources"]) == (waiting["id"], ["b"])
    assert await library.texts("office opens") == ["The office opens at ten."]
    assert (await library.get(old["id"]))["source"] is None
    await library.process()
    assert await library.texts("office opens") == ["The office opens at nine."]
    await library.agent.request("GET", f"{DOCUMENTS}/{old['id']}", status=HTTPStatus.NOT_FOUND)
    assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}


@pytest.mark.parametrize("deleted", ["source", "document"])
async def test_what_a_source_has_left_goes_with_what_it_has_joined(library: Library, deleted: str) -> None:
    await library.add("The office opens at ten.", source="b")
    waiting = await library.upload("The office opens at nine.", source="a")
    await library.upload("The office opens at nine.", source="b")
    path = f"{DOCUMENTS}/{waiting['id']}"
    await library.agent.request("DELETE", path, params={"source": "b"} if deleted == "source" else None)
    assert await library.texts("office opens") == []
    await library.process()
    left = [] if deleted == "document" else ["The office opens at nine."]
    assert await library.texts("office opens") == left
    assert (await library.rows())["document_chunk"] == len(left)


@pytest.mark.parametrize("source", [None, "c", "b"])
async def test_what_a_source_has_left_stays_if_its_bytes_come_again(
    library: Library, source: str | None
) -> None:
    old = await library.add("The office opens at ten.", source="b")
    await library.upload("The office opens at nine.", source="a")
    await library.upload("The office opens at nine.", source="b")
    fields = {} if source is None else {"source": source}
    assert (await library.upload("The office opens at ten.", "again.txt", **fields))["id"] == old["id"]
    await library.process()
    assert sorted(await library.texts("office opens")) == [
        "The office opens at nine.",
        "The office opens at ten.",
    ]
    assert (await library.get(old["id"]))["source"] == (source or "again.txt")
    assert (await library.rows())["document_chunk"] == 2


async def test_a_source_whose_bytes_another_has_failed_with_joins_the_next_attempt(library: Library) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
    failed = await library.add(picture, "a.png", source="a")
    await library.add("The office opens at ten.", source="b")
    joined = await library.add(picture, "b.png", source="b")
    assert (joined["id"], joined["version"], joined["state"]) == (failed["id"], 2, "failed")
    assert joined["other_sources"] == ["b"]
    assert await library.texts("office opens") == ["The office opens at ten."]
    await library.add("The office opens at eleven.", source="b")
    assert await library.texts("office opens") == ["The office opens at eleven."]
    assert (await library.rows())["document_chunk"] == 1


async def test_a_new_version_that_can_not_be_read_leaves_the_old_one(library: Library) -> None:
    await library.add("The office opens at nine.", "a.txt", source=SOURCE)
    failed = await library.add(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8, "a.png", source=SOURCE)
    assert (failed["state"], failed["searchable"]) == ("failed", True)
    assert await library.texts("office") == ["The office opens at nine."]
    restored = await library.add("The office opens at ten.", "a.txt", source=SOURCE)
    assert (restored["state"], restored["version"]) == ("ready", 3)
    assert await library.texts("office") == ["The office opens at ten."]


async def test_a_version_that_was_replaced_before_it_was_published_leaves_nothing(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker is at its second batch when the next version comes."""
    monkeypatch.setattr(processing, "BATCH", 1)
    store, calls = processing._Storing._store, 0

    async def replace_meanwhile(self: processing._Storing, *arguments: object) -> bool | None:
        nonlocal calls
        calls += 1
        if calls == 2:
            await library.upload("The office opens at ten.", source=SOURCE)
        return await store(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(processing._Storing, "_store", replace_meanwhile)
    added = await library.add(paragraphs("old harbour", 3), source=SOURCE)
    assert (added["state"], added["version"]) == ("ready", 2)
    assert await library.texts("office harbour") == ["The office opens at ten."]
    assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}


async def found_versions(library: Library) -> list[str]:
    """Return the version that each chunk is of which a search finds."""
    return [version for text in await library.texts("harbour") for version in re.findall(r"version\d+", text)]


@pytest.fixture
def killed_worker() -> Iterator[Kill]:
    with killing_process("tests.integration.documents.killed_worker") as run:
        yield run


async def test_a_worker_killed_at_any_point_leaves_one_whole_version_and_doubles_nothing(
    library: Library, killed_worker: Kill
) -> None:
    await library.add(paragraphs("version0 harbour", CHUNKS), source=SOURCE)
    code, point, number, killed = -signal.SIGKILL, 1, 0, 0
    while code == -signal.SIGKILL:
        number += 1
        await library.upload(paragraphs(f"version{number} harbour", CHUNKS), source=SOURCE)
        code = await asyncio.to_thread(killed_worker, library.gateway.resources.settings, point)
        killed += code == -signal.SIGKILL
        between = await found_versions(library)
        assert between in ([f"version{number - 1}"] * CHUNKS, [f"version{number}"] * CHUNKS), point

        await library.process()
        assert await found_versions(library) == [f"version{number}"] * CHUNKS
        assert await library.rows() == {"document_chunk": CHUNKS, "document_file": 1, "points": CHUNKS}
        point += 17
    assert code == 0
    assert killed >= 4


async def test_a_file_of_the_same_name_replaces_the_one_before_and_the_response_says_so(
    library: Library,
) -> None:
    old = await library.add("The office opens at nine.", "hours.txt")
    new = await library.upload("The office opens at ten.", "hours.txt")
    replaced = {"id": old["id"], "version": 1, "file_name": "hours.txt", "sha256": old["sha256"]}
    assert (new["id"], new["version"], new["source"], new["replaced"]) == (
        old["id"],
        2,
        "hours.txt",
        replaced,
    )
    assert await library.texts("office") == ["The office opens at nine."]
    await library.process()
    assert await library.texts("office") == ["The office opens at ten."]
    assert "replaced" not in await library.get(new["id"])


async def test_a_file_that_becomes_that_of_another_name_says_what_it_left(library: Library) -> None:
    nine = await library.add("The office opens at nine.", "a.txt")
    ten = await library.add("The office opens at ten.", "b.txt")
    moved = await library.upload("The office opens at ten.", "a.txt")
    assert (moved["id"], moved["other_sources"], moved["replaced"]["id"]) == (
        ten["id"],
        ["a.txt"],
        nine["id"],
    )
    assert await library.texts("office") == ["The office opens at ten."]


async def test_files_without_a_name_replace_no_other(library: Library) -> None:
    for text in ("The office opens at nine.", "The office opens at ten."):
        body = f'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n{text}\r\n--b--\r\n'
        headers = {"content-type": "multipart/form-data; boundary=b"}
        uploaded = (await library.gateway.client.post(DOCUMENTS, content=body, headers=headers)).json()
        assert (uploaded["source"], uploaded["file_name"]) == (None, "document")
    await library.process()
    assert len(await library.texts("office")) == 2


async def test_files_of_one_name_that_come_at_once_leave_one_document(library: Library) -> None:
    texts = [f"The office opens at {number}." for number in range(8)]
    await asyncio.gather(*[library.upload(text, "hours.txt") for text in texts])
    await library.process()
    assert len(await library.texts("office")) == 1
    assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}


async def test_a_file_that_fails_leaves_the_one_of_its_name_found(library: Library) -> None:
    await library.add("The office opens at nine.", "hours.txt")
    failed = await library.add(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8, "hours.txt")
    assert (failed["state"], failed["searchable"]) == ("failed", True)
    assert await library.texts("office") == ["The office opens at nine."]


async def test_a_name_in_another_form_of_unicode_is_the_same_name(library: Library) -> None:
    old = await library.add("The office opens at nine.", "cafe\u0301.txt")
    new = await library.add("The office opens at ten.", "caf\u00e9.txt")
    assert (new["id"], new["version"]) == (old["id"], 2)
