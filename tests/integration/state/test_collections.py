"""SE5, SE6: labelled collections of a session behave alike in Postgres and in Redis."""

import asyncio
import base64
import struct
from typing import Any

import pytest

from shared.conversation.sessions.state import open_state
from shared.conversation.values.collection import Doc
from shared.conversation.values.value import Int
from shared.foundation import errors
from shared.foundation.scope import Caller
from tests.badinput import problem
from tests.conftest import Gateway
from tests.integration.state.conftest import SessionClient
from tests.long_form import in_long_form

_WRITER_COUNT = in_long_form(50, otherwise=20)

_BYTES = base64.b64encode(bytes(range(24))).decode()
_OBJ = {"type": "obj", "data": _BYTES, "metadata": {"mime": "x"}}
COLLECTIONS: list[tuple[str, Any]] = [
    ("doc", {"a": True, "b": 1, "c": -0.0, "d": "x", "e": {"type": "float", "value": "NaN"}, "": 2}),
    ("block", {"a": 1, "b": _OBJ}),
    ("set", [1, 1.0, True, "1", _OBJ, {"type": "float", "value": "NaN"}]),
    ("list", [1, 1, "x", _OBJ]),
    ("tuple", ["x", 1.5]),
    ("vec", {"shape": [2, 3], "labels": ["one", "two"], "data": _BYTES}),
    ("vec", {"shape": [6], "data": _BYTES}),
    ("tensor", {"dtype": "int16", "shape": [3, 2, 2], "data": _BYTES}),
]


@pytest.mark.parametrize(("collection_type", "value"), COLLECTIONS)
async def test_a_collection_of_every_type_is_read_back_as_it_was_written(
    session: SessionClient, collection_type: str, value: Any
) -> None:
    tag = await session.put("things", collection_type, value)
    response = await session.request("GET", "/collections/things")
    payload = response.json()
    assert (payload["type"], repr(payload["value"]), response.headers["etag"]) == (
        collection_type,
        repr(value),
        tag,
    )
    assert (payload["label"], payload["index"], f'"{payload["version"]}"') == ("things", False, tag)


@pytest.mark.parametrize(
    ("collection_type", "value", "rule"),
    [
        ("doc", {"a": _OBJ}, "must not hold bytes"),
        ("doc", [1], "must be an object"),
        ("list", {"a": 1}, "must be an array"),
        ("vec", [], "array of numbers"),
        ("vec", [[1, 2], [1]], "rows of one dimension"),
        ("vec", [1e39], "32-bit"),
        ("vec", [True], "numbers"),
        ("tensor", {"dtype": "int16", "shape": [5], "data": _BYTES}, "as long as the shape"),
        ("tensor", {"dtype": "complex", "shape": [5], "data": _BYTES}, "one of bool"),
        ("tensor", {"dtype": "int8", "shape": [-1], "data": ""}, "whole numbers"),
        ("heap", [], "one of doc"),
    ],
)
async def test_an_invalid_collection_is_rejected(
    session: SessionClient, collection_type: str, value: Any, rule: str
) -> None:
    response = await session.request(
        "PUT", "/collections/things", {"type": collection_type, "value": value}, status=422
    )
    assert rule in problem.parse_problem(response)["detail"]
    assert (await session.read("/collections"))["results"] == []


async def test_labels_are_listed_with_type_version_and_size(session: SessionClient) -> None:
    tags = {label: await session.put(label, "list", [1] * size) for label, size in (("b/c", 50), ("a", 1))}
    small, large = (await session.read("/collections"))["results"]
    assert (small["label"], large["label"]) == ("a", "b/c")
    assert {info["label"]: f'"{info["version"]}"' for info in (small, large)} == tags
    assert small["type"] == "list"
    assert large["size_bytes"] > small["size_bytes"] > 0


async def test_changing_a_snapshot_has_no_effect_until_it_is_written_back(session: SessionClient) -> None:
    await session.put("plans", "doc", {"n": 1})
    resources, caller = session.gateway.resources, Caller("k", session.gateway.tenant, frozenset({"write"}))
    async with open_state(resources, caller, session.id, write=True) as store:
        snapshot, original = await store.get_collection("plans"), await store.get_collection("plans")
        assert snapshot is not None
        assert original is not None
        assert isinstance(snapshot.collection, Doc)
        snapshot.collection.set("n", Int(2))
        assert await store.get_collection("plans") == original
        version = {snapshot.info.version}
        await store.put_collection("plans", snapshot.collection, index=False, expected=version)
        with pytest.raises(errors.PreconditionFailed):
            await store.put_collection("plans", original.collection, index=False, expected=version)
    assert (await session.read("/collections/plans"))["value"] == {"n": 2}


async def test_a_write_based_on_an_older_version_is_rejected(session: SessionClient) -> None:
    first = await session.put("plans", "doc", {"n": 1})
    second = await session.put("plans", "doc", {"n": 2}, headers={"if-match": first})
    assert second != first
    body = {"type": "doc", "value": {"n": 3}}
    conflict = await session.request(
        "PUT", "/collections/plans", body, status=412, headers={"if-match": first}
    )
    assert second.strip('"') in problem.parse_problem(conflict)["detail"]
    await session.request("DELETE", "/collections/plans", status=412, headers={"if-match": first})
    assert (await session.read("/collections/plans"))["value"] == {"n": 2}
    await session.put("plans", "doc", {"n": 3}, headers={"if-match": f'"1", {second}'})
    await session.put("plans", "doc", {"n": 4}, headers={"if-match": "*"})
    assert (await session.read("/collections/plans"))["value"] == {"n": 4}


async def test_nobody_overwrites_a_collection_without_naming_what_is_replaced(session: SessionClient) -> None:
    tag = await session.put("plans", "doc", {"n": 1})
    body = {"type": "doc", "value": {"n": 2}}
    refused = await session.request("PUT", "/collections/plans", body, status=428)
    assert "If-Match" in problem.parse_problem(refused)["detail"]
    assert tag.strip('"') in problem.parse_problem(refused)["detail"]
    assert (await session.read("/collections/plans"))["value"] == {"n": 1}
    await session.request("DELETE", "/collections/plans")
    await session.put("plans", "doc", {"n": 3})


async def test_an_old_version_does_not_match_after_a_collection_was_removed(session: SessionClient) -> None:
    first = await session.put("plans", "doc", {"n": 1})
    assert (await session.request("DELETE", "/collections/plans", headers={"if-match": first})).json() == {
        "label": "plans",
        "deleted": True,
    }
    body = {"type": "doc", "value": {"n": 2}}
    for condition in (first, "*"):
        await session.request("PUT", "/collections/plans", body, status=412, headers={"if-match": condition})
    second = await session.put("plans", "doc", {"n": 2})
    assert second != first
    await session.request("PUT", "/collections/plans", body, status=412, headers={"if-match": first})


async def test_a_writer_can_require_that_a_collection_does_not_exist(session: SessionClient) -> None:
    new = {"if-none-match": "*"}
    await session.put("plans", "doc", {"n": 1}, headers=new)
    body = {"type": "doc", "value": {"n": 2}}
    await session.request("PUT", "/collections/plans", body, status=412, headers=new)
    assert (await session.read("/collections/plans"))["value"] == {"n": 1}


async def test_a_reader_with_the_current_version_gets_not_modified(session: SessionClient) -> None:
    tag = await session.put("plans", "doc", {"n": 1})
    for condition in (tag, f"W/{tag}", f'"9", {tag}', "*"):
        response = await session.request(
            "GET", "/collections/plans", status=304, headers={"if-none-match": condition}
        )
        assert (response.content, response.headers["etag"]) == (b"", tag)
    await session.request("GET", "/collections/plans", headers={"if-none-match": '"9"'})


@pytest.mark.parametrize(
    "headers", [{"if-match": "12"}, {"if-match": '"1'}, {"if-match": ""}, {"if-none-match": '"1"'}]
)
async def test_a_malformed_condition_is_rejected(session: SessionClient, headers: dict[str, str]) -> None:
    body = {"type": "doc", "value": {}}
    response = await session.request("PUT", "/collections/plans", body, status=422, headers=headers)
    assert problem.parse_problem(response)["errors"][0]["field"].lower() in headers


async def test_many_concurrent_writers_lose_no_update(session: SessionClient) -> None:
    """SE5: every writer reads, adds one and writes back, and retries after a conflict."""
    await session.put("count", "doc", {"n": 0})

    async def add_one() -> None:
        while True:
            current = await session.request("GET", "/collections/count")
            body = {"type": "doc", "value": {"n": current.json()["value"]["n"] + 1}}
            path = f"/v1/sessions/{session.id}/collections/count"
            headers = {"if-match": current.headers["etag"]}
            response = await session.gateway.client.put(path, json=body, headers=headers)
            if response.status_code == 200:
                return
            assert response.status_code == 412, response.text

    await asyncio.gather(*(add_one() for _ in range(_WRITER_COUNT)))
    assert (await session.read("/collections/count"))["value"] == {"n": _WRITER_COUNT}


async def test_a_vec_that_is_an_index_is_searched_by_cosine(session: SessionClient) -> None:
    rows = {"rows": [[1, 0, 0], [0, 2, 0], [1, 1, 0], [0, 0, 0], [-1, 0, 0]], "labels": list("abcde")}
    await session.put("points", "vec", rows, index=True)
    body = {"vector": [2, 0.5, 0], "limit": 3}
    results = (await session.request("POST", "/collections/points/search", body)).json()["results"]
    assert [(row["place"], row["label"]) for row in results] == [(0, "a"), (2, "c"), (1, "b")]
    assert results[0]["score"] == pytest.approx(2 / (4.25**0.5))
    body = {"vector": [1, 0, 0]}
    results = (await session.request("POST", "/collections/points/search", body)).json()["results"]
    assert [row["label"] for row in results] == ["a", "c", "b", "e"], "a row of zeros is never a result"


async def test_a_large_vec_is_searched_exactly_too(session: SessionClient) -> None:
    rows = [[float(position % 97), float(position % 89), 1.0] for position in range(5000)]
    data = base64.b64encode(b"".join(struct.pack("<3f", *row) for row in rows)).decode()
    await session.put("points", "vec", {"shape": [5000, 3], "data": data}, index=True)
    body = {"vector": rows[4321], "limit": 1}
    (best,) = (await session.request("POST", "/collections/points/search", body)).json()["results"]
    assert best["place"] == 4321
    assert best["score"] == pytest.approx(1)


async def test_only_an_index_can_be_searched_and_only_with_a_valid_vector(session: SessionClient) -> None:
    await session.request("POST", "/collections/points/search", {"vector": [1]}, status=404)
    tag = await session.put("points", "vec", [[1, 0], [0, 1]])
    response = await session.request("POST", "/collections/points/search", {"vector": [1, 0]}, status=409)
    assert "no index" in problem.parse_problem(response)["detail"]
    await session.put("points", "vec", [[1, 0], [0, 1]], index=True, headers={"if-match": tag})
    for vector, rule in (([1], "dimension 2"), ([0, 0], "direction"), ([1e300, 0], "32-bit")):
        response = await session.request("POST", "/collections/points/search", {"vector": vector}, status=422)
        assert rule in problem.parse_problem(response)["detail"]
    body = {"type": "doc", "value": {}, "index": True}
    assert problem.names_violation(
        await session.request("PUT", "/collections/d", body, status=422), "index", "vec alone"
    )


async def test_collections_of_an_unknown_session_are_not_found(gateway: Gateway) -> None:
    unknown = SessionClient(gateway, "unknown", "tmp")
    await unknown.request("GET", "/collections", status=404)
    await unknown.request("GET", "/collections/a", status=404)
    await unknown.request("PUT", "/collections/a", {"type": "doc", "value": {}}, status=404)
    await unknown.request("DELETE", "/collections/a", status=404)
