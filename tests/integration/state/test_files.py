"""SE1, SE6: files of a session are rendered on request, and its parts are found by their paths."""

import json
from datetime import UTC, datetime

from tests.badinput import problem
from tests.conftest import Gateway
from tests.integration.state.conftest import OpenSession, SessionClient


async def test_files_are_listed_by_name_with_size_and_time(session: SessionClient) -> None:
    started_at = datetime.now(UTC)
    await session.set("plan", "x")
    await session.put("b/c", "doc", {"a": 1})
    await session.put("a", "list", [1])
    files = {file["name"]: file for file in (await session.read("/files"))["results"]}
    assert list(files) == sorted(files)
    assert {"collections/a.json", "collections/b/c.json", "kv.json", "transcript.md"} <= set(files)
    for name, file in files.items():
        content = (await session.request("GET", f"/files/{name}")).content
        assert file["size_bytes"] == len(content)
    opened_at = datetime.fromisoformat((await session.read(""))["created_at"])
    modified = {name: datetime.fromisoformat(file["modified"]) for name, file in files.items()}
    assert modified["transcript.md"] == opened_at, "the transcript is empty"
    assert (
        opened_at <= modified["kv.json"] < modified["collections/b/c.json"] < modified["collections/a.json"]
    )
    assert (modified["kv.json"] - started_at).total_seconds() < 60


async def test_files_show_the_state_of_the_session(session: SessionClient) -> None:
    assert json.loads((await session.request("GET", "/files/kv.json")).content)["values"] == {}
    assert (await session.request("GET", "/files/transcript.md")).content == b""
    await session.set("b", {"type": "float", "value": "NaN"})
    await session.set("a", 1)
    assert (await session.request("GET", "/files/kv.json")).json() == {
        "cap": 200,
        "order": ["b", "a"],
        "values": {"b": {"type": "float", "value": "NaN"}, "a": 1},
    }
    await session.put("points", "vec", {"shape": [1], "data": "AACAPw=="}, index=True)
    response = await session.request("GET", "/files/collections/points.json")
    assert response.headers["content-type"].startswith("application/json")
    assert response.json() == {"type": "vec", "index": True, "value": {"shape": [1], "data": "AACAPw=="}}


async def test_an_unknown_file_is_not_found(session: SessionClient) -> None:
    for name in ("nothing.md", "collections/nothing.json", "collections/.json", "collections/a", "kv"):
        response = await session.request(
            "GET", f"/files/{name}", status=422 if name == "collections/.json" else 404
        )
        problem.parse_problem(response)


async def test_ids_keys_and_labels_with_slashes_are_distinguished_from_parts_of_a_session(
    gateway: Gateway, open_session: OpenSession
) -> None:
    session = await open_session(gateway, "basic_session", id="kv/team/seven")
    await session.set("kv/turns/transcript", 1)
    await session.set("a/files/b", 2)
    await session.put("x/search/collections/y", "list", [3])
    assert await session.keys() == ["kv/turns/transcript", "a/files/b"]
    assert (await session.read("/collections/x/search/collections/y"))["value"] == [3]
    assert (await session.read("/files/collections/x/search/collections/y.json"))["value"] == [3]
    assert (await session.read(""))["id"] == "kv/team/seven"
    assert (await session.read("/turns"))["results"] == []


async def test_an_id_that_could_be_read_as_a_part_of_another_session_is_rejected(gateway: Gateway) -> None:
    for session_id in ("a/kv", "a/kv/b", "a/b/transcript/c", "a/working-memory", "a/turns"):
        response = await gateway.client.post("/v1/sessions", json={"id": session_id})
        assert problem.names_violation(response, "id", "after its first"), session_id
    for session_id in ("kv", "turns/a", "kvs/a", "a/kv2"):
        response = await gateway.client.post("/v1/sessions", json={"id": session_id})
        assert response.status_code == 201
        assert (await gateway.client.get(f"/v1/sessions/{session_id}/kv")).status_code == 200
