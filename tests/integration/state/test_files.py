"""SE1, SE6: files of a session are made when they are asked for, and its parts are found by path."""

import json
from datetime import UTC, datetime

from tests.badinput import problem
from tests.conftest import Gateway
from tests.integration.state.conftest import Held, Opening


async def test_files_are_listed_by_name_with_size_and_time(held: Held) -> None:
    begun = datetime.now(UTC)
    await held.set("plan", "x")
    await held.put("b/c", "doc", {"a": 1})
    await held.put("a", "list", [1])
    listed = {one["name"]: one for one in (await held.read("/files"))["results"]}
    assert list(listed) == sorted(listed)
    assert {"collections/a.json", "collections/b/c.json", "kv.json", "transcript.md"} <= set(listed)
    for name, one in listed.items():
        content = (await held.ask("GET", f"/files/{name}")).content
        assert one["size_bytes"] == len(content)
    opened = datetime.fromisoformat((await held.read(""))["created_at"])
    modified = {name: datetime.fromisoformat(one["modified"]) for name, one in listed.items()}
    assert modified["transcript.md"] == opened, "nothing was said yet"
    assert opened <= modified["kv.json"] < modified["collections/b/c.json"] < modified["collections/a.json"]
    assert (modified["kv.json"] - begun).total_seconds() < 60


async def test_files_show_the_state_of_the_session(held: Held) -> None:
    assert json.loads((await held.ask("GET", "/files/kv.json")).content)["values"] == {}
    assert (await held.ask("GET", "/files/transcript.md")).content == b""
    await held.set("b", {"type": "float", "value": "NaN"})
    await held.set("a", 1)
    assert (await held.ask("GET", "/files/kv.json")).json() == {
        "cap": 200,
        "order": ["b", "a"],
        "values": {"b": {"type": "float", "value": "NaN"}, "a": 1},
    }
    await held.put("points", "vec", {"shape": [1], "data": "AACAPw=="}, index=True)
    answer = await held.ask("GET", "/files/collections/points.json")
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json() == {"type": "vec", "index": True, "value": {"shape": [1], "data": "AACAPw=="}}


async def test_an_unknown_file_is_not_found(held: Held) -> None:
    for name in ("nothing.md", "collections/nothing.json", "collections/.json", "collections/a", "kv"):
        answer = await held.ask("GET", f"/files/{name}", status=422 if name == "collections/.json" else 404)
        problem.read(answer)


async def test_ids_keys_and_labels_with_slashes_are_distinguished_from_parts_of_a_session(
    gateway: Gateway, open_held: Opening
) -> None:
    held = await open_held(gateway, "basic_session", id="kv/team/seven")
    await held.set("kv/turns/transcript", 1)
    await held.set("a/files/b", 2)
    await held.put("x/search/collections/y", "list", [3])
    assert await held.keys() == ["kv/turns/transcript", "a/files/b"]
    assert (await held.read("/collections/x/search/collections/y"))["value"] == [3]
    assert (await held.read("/files/collections/x/search/collections/y.json"))["value"] == [3]
    assert (await held.read(""))["id"] == "kv/team/seven"
    assert (await held.read("/turns"))["results"] == []


async def test_an_id_that_could_be_read_as_a_part_of_another_session_is_rejected(gateway: Gateway) -> None:
    for session_id in ("a/kv", "a/kv/b", "a/b/transcript/c", "a/working-memory", "a/turns"):
        answer = await gateway.client.post("/v1/sessions", json={"id": session_id})
        assert problem.names(answer, "id", "after its first"), session_id
    for session_id in ("kv", "turns/a", "kvs/a", "a/kv2"):
        answer = await gateway.client.post("/v1/sessions", json={"id": session_id})
        assert answer.status_code == 201
        assert (await gateway.client.get(f"/v1/sessions/{session_id}/kv")).status_code == 200
