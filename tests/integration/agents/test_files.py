"""SE8: an agent's files are bytes under a name, returned as they were written."""

from http import HTTPStatus

import pytest

from tests.agent import Agent
from tests.badinput import problem
from tests.integration.agents.conftest import PROFILE

FILES = f"{PROFILE}/files"
BYTES = bytes(range(256)) * 16


async def test_a_file_is_returned_byte_for_byte_with_its_content_type(agent: Agent) -> None:
    file = await agent.request(
        "PUT", f"{FILES}/a/face.png", content=BYTES, headers={"content-type": "image/png"}
    )
    assert (file["name"], file["content_type"], file["size_bytes"]) == (
        "a/face.png",
        "image/png",
        4096,
    )
    response = await agent.client.get(f"{FILES}/a/face.png")
    assert (response.content, response.headers["content-type"]) == (BYTES, "image/png")
    assert (await agent.request("GET", FILES))["results"] == [file]


@pytest.mark.parametrize("content_type", ["text/plain", "text/html; charset=latin-1", "application/json"])
async def test_no_content_type_is_changed_or_guessed(agent: Agent, content_type: str) -> None:
    await agent.request("PUT", f"{FILES}/x.png", content=b"{not json", headers={"content-type": content_type})
    response = await agent.client.get(f"{FILES}/x.png")
    assert (response.content, response.headers["content-type"]) == (b"{not json", content_type)
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_without_a_content_type_a_file_is_bytes_and_may_have_none_at_all(agent: Agent) -> None:
    await agent.request("PUT", f"{FILES}/empty", content=b"")
    response = await agent.client.get(f"{FILES}/empty")
    assert (response.content, response.headers["content-type"]) == (b"", "application/octet-stream")


async def test_a_file_is_overwritten_listed_by_name_and_deleted(agent: Agent) -> None:
    for name in ("b", "a", "c"):
        await agent.request("PUT", f"{FILES}/{name}", content=b"first")
    first = {result["name"]: result for result in (await agent.request("GET", FILES))["results"]}
    await agent.request("PUT", f"{FILES}/b", content=b"second!", headers={"content-type": "text/x"})
    files = (await agent.request("GET", FILES))["results"]
    assert [(file["name"], file["size_bytes"]) for file in files] == [("a", 5), ("b", 7), ("c", 5)]
    assert files[1]["modified"] > first["b"]["modified"]
    assert (await agent.client.get(f"{FILES}/b")).content == b"second!"
    assert await agent.request("DELETE", f"{FILES}/b") == {"name": "b", "deleted": True}
    assert await agent.request("DELETE", f"{FILES}/b") == {"name": "b", "deleted": False}
    await agent.request("GET", f"{FILES}/b", status=HTTPStatus.NOT_FOUND)
    assert [result["name"] for result in (await agent.request("GET", FILES))["results"]] == ["a", "c"]


async def test_a_mebibyte_is_kept_and_a_byte_more_refused(agent: Agent) -> None:
    mebibyte = BYTES * 256
    assert len(mebibyte) == 1024 * 1024
    await agent.request("PUT", f"{FILES}/whole", content=mebibyte)
    assert (await agent.client.get(f"{FILES}/whole")).content == mebibyte
    response = await agent.client.put(f"{FILES}/more", content=mebibyte + b"x")
    assert response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert [result["name"] for result in (await agent.request("GET", FILES))["results"]] == ["whole"]


@pytest.mark.parametrize("name", ["%20", "x" * 129, "a//b", "%E2%80%A8", "a/%2E%2E/b", "%2E"])
async def test_a_name_that_breaks_a_rule_is_refused(agent: Agent, name: str) -> None:
    for method in ("PUT", "GET", "DELETE"):
        assert problem.names_violation(await agent.client.request(method, f"{FILES}/{name}"), "name")
    await agent.request("GET", PROFILE, status=HTTPStatus.NOT_FOUND)


async def test_a_content_type_that_no_header_can_carry_is_refused(agent: Agent) -> None:
    for content_type in (b"image/\xe9", b"x" * 256):
        response = await agent.client.put(f"{FILES}/x", content=b"x", headers={b"content-type": content_type})
        assert problem.names_violation(response, "content-type")
    await agent.request("GET", PROFILE, status=HTTPStatus.NOT_FOUND)
