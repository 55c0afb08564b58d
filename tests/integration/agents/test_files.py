"""SE8: an agent's files: bytes under a name, given back as they came."""

from http import HTTPStatus

import pytest

from tests.badinput import problem
from tests.integration.agents.conftest import ROOT
from tests.journey.agent import Agent

FILES = f"{ROOT}/files"
BYTES = bytes(range(256)) * 16


async def test_a_file_is_given_back_byte_for_byte_with_its_content_type(agent: Agent) -> None:
    written = await agent.ask(
        "PUT", f"{FILES}/a/face.png", content=BYTES, headers={"content-type": "image/png"}
    )
    assert (written["name"], written["content_type"], written["size_bytes"]) == (
        "a/face.png",
        "image/png",
        4096,
    )
    read = await agent.client.get(f"{FILES}/a/face.png")
    assert (read.content, read.headers["content-type"]) == (BYTES, "image/png")
    assert (await agent.ask("GET", FILES))["results"] == [written]


@pytest.mark.parametrize("told", ["text/plain", "text/html; charset=latin-1", "application/json"])
async def test_no_content_type_is_changed_or_guessed(agent: Agent, told: str) -> None:
    await agent.ask("PUT", f"{FILES}/x.png", content=b"{not json", headers={"content-type": told})
    read = await agent.client.get(f"{FILES}/x.png")
    assert (read.content, read.headers["content-type"]) == (b"{not json", told)
    assert read.headers["x-content-type-options"] == "nosniff"


async def test_without_a_content_type_a_file_is_bytes_and_may_have_none_at_all(agent: Agent) -> None:
    await agent.ask("PUT", f"{FILES}/empty", content=b"")
    read = await agent.client.get(f"{FILES}/empty")
    assert (read.content, read.headers["content-type"]) == (b"", "application/octet-stream")


async def test_a_file_is_overwritten_listed_by_name_and_deleted(agent: Agent) -> None:
    for name in ("b", "a", "c"):
        await agent.ask("PUT", f"{FILES}/{name}", content=b"first")
    first = {one["name"]: one for one in (await agent.ask("GET", FILES))["results"]}
    await agent.ask("PUT", f"{FILES}/b", content=b"second!", headers={"content-type": "text/x"})
    listed = (await agent.ask("GET", FILES))["results"]
    assert [(one["name"], one["size_bytes"]) for one in listed] == [("a", 5), ("b", 7), ("c", 5)]
    assert listed[1]["modified"] > first["b"]["modified"]
    assert (await agent.client.get(f"{FILES}/b")).content == b"second!"
    assert await agent.ask("DELETE", f"{FILES}/b") == {"name": "b", "deleted": True}
    assert await agent.ask("DELETE", f"{FILES}/b") == {"name": "b", "deleted": False}
    await agent.ask("GET", f"{FILES}/b", status=HTTPStatus.NOT_FOUND)
    assert [one["name"] for one in (await agent.ask("GET", FILES))["results"]] == ["a", "c"]


async def test_a_mebibyte_is_kept_and_a_byte_more_refused(agent: Agent) -> None:
    whole = BYTES * 256
    assert len(whole) == 1024 * 1024
    await agent.ask("PUT", f"{FILES}/whole", content=whole)
    assert (await agent.client.get(f"{FILES}/whole")).content == whole
    refused = await agent.client.put(f"{FILES}/more", content=whole + b"x")
    assert refused.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert [one["name"] for one in (await agent.ask("GET", FILES))["results"]] == ["whole"]


@pytest.mark.parametrize("name", ["%20", "x" * 129, "a//b", "%E2%80%A8", "a/%2E%2E/b", "%2E"])
async def test_a_name_that_breaks_a_rule_is_refused(agent: Agent, name: str) -> None:
    for method in ("PUT", "GET", "DELETE"):
        assert problem.names(await agent.client.request(method, f"{FILES}/{name}"), "name")
    await agent.ask("GET", ROOT, status=HTTPStatus.NOT_FOUND)


async def test_a_content_type_that_no_header_could_tell_is_refused(agent: Agent) -> None:
    for told in (b"image/\xe9", b"x" * 256):
        refused = await agent.client.put(f"{FILES}/x", content=b"x", headers={b"content-type": told})
        assert problem.names(refused, "content-type")
    await agent.ask("GET", ROOT, status=HTTPStatus.NOT_FOUND)
