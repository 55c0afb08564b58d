"""MM7: documents of the same bytes from several sources: each of them finds its text, whatever others do."""

import asyncio
from http import HTTPStatus

import pytest

from tests.agent import Json
from tests.integration.documents.conftest import DOCUMENTS, Library

NINE, TEN = "The office opens at nine.", "The office opens at ten."


async def shared_by_three(library: Library) -> Json:
    """Upload the same bytes from three sources, and return their document."""
    await library.add(NINE, "a.txt", source="a")
    await library.upload(NINE, "b.txt", source="b")
    return await library.upload(NINE, "c.txt", source="c")


async def test_the_same_bytes_from_another_source_are_one_document_that_knows_both(library: Library) -> None:
    shared = await shared_by_three(library)
    assert (shared["source"], shared["other_sources"], shared["version"]) == ("a", ["b", "c"], 1)
    repeated = await library.upload(NINE, "again.txt", source="b")
    assert repeated == shared == await library.get(shared["id"])
    assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}


@pytest.mark.parametrize(
    ("changed", "source", "others"), [("a", "b", ["c"]), ("b", "a", ["c"]), ("c", "a", ["b"])]
)
async def test_a_source_whose_file_changes_leaves_the_text_to_the_others(
    library: Library, changed: str, source: str, others: list[str]
) -> None:
    shared = await shared_by_three(library)
    new = await library.upload(TEN, source=changed)
    assert (new["id"] != shared["id"], new["source"], new["other_sources"]) == (True, changed, [])
    assert await library.texts("office") == [NINE]
    await library.process()
    assert sorted(await library.texts("office")) == [NINE, TEN]
    left = await library.get(shared["id"])
    assert (left["source"], left["other_sources"], left["state"]) == (source, others, "ready")
    repeated = await library.add("The office opens at eleven.", source=changed)
    assert (repeated["id"], repeated["version"]) == (new["id"], 2)


async def test_a_document_that_a_file_left_is_named_as_the_one_that_is_left(library: Library) -> None:
    shared = await library.add(NINE, "prices-2025.txt")
    assert (await library.upload(NINE, "copies/archive-copy.txt"))["file_name"] == "prices-2025.txt"
    await library.add(TEN, "prices-2025.txt")
    left = await library.get(shared["id"])
    assert (left["title"], left["file_name"]) == ("archive-copy.txt", "archive-copy.txt")
    assert left["source"].endswith("archive-copy.txt")


async def test_a_source_whose_file_becomes_that_of_another_document_moves_to_it(library: Library) -> None:
    shared = await shared_by_three(library)
    ten = await library.add(TEN, source="d")
    moved = await library.upload(TEN, source="b")
    assert (moved["id"], moved["other_sources"], moved["version"]) == (ten["id"], ["b"], 1)
    assert (await library.get(shared["id"]))["other_sources"] == ["c"]
    assert (await library.rows())["document_file"] == 2


async def test_sources_that_change_and_come_at_once_are_each_in_one_document(library: Library) -> None:
    await shared_by_three(library)
    texts = {"a": NINE, "b": TEN, "c": TEN, "d": NINE}
    await asyncio.gather(*[library.upload(text, source=source) for source, text in texts.items()])
    await library.process()
    listed = (await library.agent.request("GET", DOCUMENTS))["results"]
    sources = [source for document in listed for source in (document["source"], *document["other_sources"])]
    assert sorted(sources) == ["a", "b", "c", "d"]
    assert sorted(await library.texts("office")) == [NINE, TEN]


async def test_deleting_one_source_leaves_the_text_of_the_others_and_the_last_takes_it(
    library: Library,
) -> None:
    shared = await shared_by_three(library)
    path = f"{DOCUMENTS}/{shared['id']}"
    for source, deleted in (("x", False), ("a", True), ("a", False), ("c", True)):
        response = await library.agent.request("DELETE", path, params={"source": source})
        assert response["deleted"] is deleted, source
        assert await library.texts("office") == [NINE]
    left = await library.get(shared["id"])
    assert (left["source"], left["other_sources"]) == ("b", [])
    assert (await library.agent.request("DELETE", path, params={"source": "b"}))["deleted"]
    await library.agent.request("GET", path, status=HTTPStatus.NOT_FOUND)
    await library.process()
    assert await library.rows() == {"document_chunk": 0, "document_file": 0, "points": 0}
