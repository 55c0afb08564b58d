"""Nobody reads or takes by a name what is another's: sessions, patrols and their working memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio

from shared.foundation import config, errors
from shared.foundation.origin import UNKNOWN
from shared.infra import redis as redis_client
from shared.memory.working import write
from tests.conftest import Gateway, running_gateway
from workers.sweep import retention

NOTE: dict[str, Any] = {"value": "the key is under the mat", "ttl_seconds": 3600}
BINDINGS = [{"user_id": "bob"}, {"agent_id": "mill"}, {"agent_id": "inn", "user_id": "bob"}, {}]
bindings = pytest.mark.parametrize("bound", BINDINGS, ids=str)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    async with running_gateway(make_settings(), f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ada(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    async with await gateway.new_client(agent_id="inn", user_id="ada") as client:
        yield client


def _name() -> str:
    return f"trip-{uuid4().hex[:8]}"


async def _open(client: httpx.AsyncClient, **fields: str) -> httpx.Response:
    return await client.post("/v1/sessions", json=fields)


async def _write(client: httpx.AsyncClient, namespace: str) -> httpx.Response:
    return await client.put(f"/v1/working/{namespace}/note", json=NOTE)


async def _read(client: httpx.AsyncClient, namespace: str) -> httpx.Response:
    return await client.get(f"/v1/working/{namespace}/note")


def _assert_taken(response: httpx.Response, field: str, name: str) -> None:
    assert response.status_code == 409, response.text
    assert response.json()["detail"] == f"the {field} '{name}' is taken"


@bindings
async def test_an_id_that_differs_in_case_alone_is_taken_and_says_nothing_about_its_owner(
    gateway: Gateway, ada: httpx.AsyncClient, bound: dict[str, str]
) -> None:
    name = _name()
    opened = (await _open(ada, id=name)).json()
    assert (await _write(ada, f"session/{name}")).status_code == 200
    async with await gateway.new_client(**bound) as client:
        for spelling in (name, name.upper(), name.title()):
            fields = {"id": spelling} if bound else {"id": spelling, "user_id": "bob"}
            _assert_taken(await _open(client, **fields), "id", spelling)
            if bound:
                assert (await _read(client, f"session/{spelling}")).status_code == 404
                assert (await _write(client, f"session/{spelling}")).status_code == 404
    for spelling in (name, name.upper()):
        assert (await _open(ada, id=spelling)).json() == opened
    assert (await _read(ada, f"session/{name}")).json()["value"] == NOTE["value"]


@pytest.mark.parametrize("bound", BINDINGS[:3], ids=str)
@pytest.mark.parametrize("kind", ["session", "patrol", "subagent"])
async def test_a_write_does_not_tell_whether_another_has_a_namespace_of_a_name_or_what_it_holds(
    gateway: Gateway, ada: httpx.AsyncClient, bound: dict[str, str], kind: str
) -> None:
    foreign, unknown = _name(), _name()
    await _open(ada, kind=kind, id=foreign, name=foreign)
    assert (await _write(ada, f"{kind}/{foreign}")).status_code == 200
    version = (await _read(ada, f"{kind}/{foreign}")).headers["etag"]
    async with await gateway.new_client(**bound) as client:
        for headers in ({}, {"if-match": version}, {"if-none-match": "*"}, {"if-match": "*"}):
            answers = set()
            for name, key in ((foreign, "note"), (foreign, "none"), (unknown, "note")):
                path = f"/v1/working/{kind}/{name}/{key}"
                responses = [
                    await client.delete(path, headers=headers),
                    await client.put(path, json=NOTE, headers=headers),
                    await client.delete("/v1/working", params={"prefix": f"{kind}/{name}"}),
                    *([] if "if-none-match" in headers else [await _append(client, path, headers)]),
                ]
                texts = [response.text.replace(name, "…").replace(key, "…") for response in responses]
                answers.add(tuple(texts))
                assert [response.status_code for response in responses] == [404] * len(responses), texts
            assert len(answers) == 1, answers
    assert (await _read(ada, f"{kind}/{foreign}")).headers["etag"] == version


async def _append(client: httpx.AsyncClient, path: str, headers: dict[str, str]) -> httpx.Response:
    return await client.patch(path, json={"append": "!"}, headers=headers)


async def test_of_many_who_open_one_id_at_once_one_gets_it(gateway: Gateway) -> None:
    for _ in range(10):
        name = _name()
        requests = [
            _open(gateway.client, id=spelling, user_id=user)
            for user in ("ada", "bob")
            for spelling in (name, name.upper(), name.title())
        ]
        responses = await asyncio.gather(*requests)
        owners = {response.json()["user_id"] for response in responses if response.status_code == 201}
        assert len(owners) == 1, [response.text for response in responses]
        assert {response.status_code for response in responses} == {201, 409}


@pytest.mark.parametrize("kind", ["patrol", "subagent"])
@bindings
async def test_a_patrol_of_anothers_name_is_refused_while_it_holds_an_entry(
    gateway: Gateway, ada: httpx.AsyncClient, bound: dict[str, str], kind: str
) -> None:
    name = _name()
    opened = (await _open(ada, kind=kind, name=name)).json()
    assert (await _write(ada, opened["namespace"])).status_code == 200
    assert (await ada.delete(f"/v1/sessions/{opened['id']}")).status_code == 200
    fields = {"kind": kind, "name": name} | ({} if bound else {"user_id": "bob"})
    async with await gateway.new_client(**bound) as client:
        for spelling in (name, name.upper()):
            _assert_taken(await _open(client, **fields | {"name": spelling}), "name", spelling)
            assert not bound or (await _read(client, f"{kind}/{spelling}")).status_code == 404
        # Ada's next patrol of the name goes on with what is there, and ends it.
        assert (await _open(ada, kind=kind, name=name.upper())).status_code == 201
        assert (await _read(ada, f"{kind}/{name}")).status_code == 200
        assert (await ada.delete("/v1/working", params={"prefix": f"{kind}/{name}"})).status_code == 200
        assert (await _open(client, **fields)).status_code == 201
        assert (await _write(client, f"{kind}/{name}")).status_code == 200
    assert (await _read(ada, f"{kind}/{name}")).status_code == 404
    assert (await _write(ada, f"{kind}/{name}")).status_code == 404


@pytest.mark.parametrize("kind", ["session", "patrol", "subagent"])
async def test_what_is_written_where_nobody_opened_anything_is_common_until_an_unbound_key_gives_it_away(
    gateway: Gateway, ada: httpx.AsyncClient, kind: str
) -> None:
    name = _name()
    fields = {"kind": kind, "id": name, "name": name}
    assert (await _write(gateway.client, f"{kind}/{name}")).status_code == 200
    assert (await _read(ada, f"{kind}/{name}")).status_code == 200
    assert (await _write(ada, f"{kind}/{name}")).status_code == 404
    _assert_taken(await _open(ada, **fields), "id" if kind == "session" else "name", name)
    assert (await _read(ada, f"{kind}/{name}")).status_code == 200
    given = await _open(gateway.client, **fields, agent_id="inn", user_id="ada")
    assert given.status_code == 201, given.text
    assert (await _write(ada, f"{kind}/{name}")).status_code == 200
    async with await gateway.new_client(user_id="bob") as bob:
        assert (await _read(bob, f"{kind}/{name}")).status_code == 404


async def test_an_empty_namespace_that_nobody_opened_is_a_bound_keys_for_the_opening(
    ada: httpx.AsyncClient,
) -> None:
    name = _name()
    assert (await _write(ada, f"patrol/{name}")).status_code == 404
    assert (await _open(ada, kind="patrol", name=name)).status_code == 201
    assert (await _write(ada, f"patrol/{name}")).status_code == 200


async def test_the_working_memory_of_a_session_goes_with_it(gateway: Gateway, ada: httpx.AsyncClient) -> None:
    name = _name()
    await _open(ada, id=name)
    await _write(ada, f"session/{name}")
    assert (await ada.delete(f"/v1/sessions/{name}")).status_code == 200
    assert (await _read(gateway.client, f"session/{name}")).status_code == 404
    async with await gateway.new_client(user_id="bob") as bob:
        assert (await _open(bob, id=name)).status_code == 201
        assert (await _read(bob, f"session/{name}")).status_code == 404
        assert (await _write(bob, f"session/{name}")).status_code == 200
    assert (await _read(ada, f"session/{name}")).status_code == 404


async def test_what_a_deletion_could_not_reach_is_read_and_taken_by_nobody(
    gateway: Gateway, ada: httpx.AsyncClient
) -> None:
    """As if Redis had been unavailable while the session was deleted."""
    name = _name()
    await _open(ada, id=name)
    await ada.delete(f"/v1/sessions/{name}")
    await write.put(
        gateway.resources, gateway.tenant, f"session/{name}/note", "left", UNKNOWN, ttl_seconds=3600
    )
    async with await gateway.new_client(user_id="bob") as bob:
        for client in (bob, ada, gateway.client):
            assert (response := await _open(client, id=name)).status_code == 409
            assert response.headers["retry-after"] == "60"
        for client in (bob, ada):
            assert (await _read(client, f"session/{name}")).status_code == 404
        await write.clear(gateway.resources, gateway.tenant, f"session/{name}")
        assert (await _open(bob, id=name)).status_code == 201


async def test_a_bound_key_opens_nothing_by_name_while_redis_is_unavailable(
    ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether others' entries are there can't be known. An id that is drawn needs no look."""

    def fail() -> None:
        raise errors.Unavailable("redis", "away")

    monkeypatch.setattr(redis_client, "failures_as_unavailable", fail)
    assert (await _open(ada, kind="patrol", name=_name())).status_code == 503
    assert (await _open(ada)).status_code == 201


async def test_a_patrol_whose_name_is_anothers_by_now_shows_nothing_of_it(
    gateway: Gateway, ada: httpx.AsyncClient
) -> None:
    name = _name()
    opened = (await _open(ada, kind="patrol", name=name)).json()
    async with await gateway.new_client(agent_id="mill") as client:
        assert (await _open(client, kind="patrol", name=name)).status_code == 201
        assert (await _write(client, f"patrol/{name}")).status_code == 200
    context = await ada.post(f"/v1/sessions/{opened['id']}/context", json={"message": "what is on my desk?"})
    assert context.status_code == 200
    assert name not in context.text


async def test_an_owner_who_opens_a_name_many_times_at_once_gets_it_each_time(
    ada: httpx.AsyncClient,
) -> None:
    for _ in range(5):
        name = _name()
        opened = await asyncio.gather(*(_open(ada, kind="patrol", name=name) for _ in range(6)))
        assert {response.status_code for response in opened} == {201}


async def test_the_sweep_forgets_owners_of_empty_namespaces_without_sessions(
    gateway: Gateway, ada: httpx.AsyncClient
) -> None:
    names = {what: _name() for what in ("open", "empty", "full")}
    for what, name in names.items():
        session = (await _open(ada, kind="patrol", name=name)).json()
        if what == "full":
            await _write(ada, f"patrol/{name}")
        if what != "open":
            await ada.delete(f"/v1/sessions/{session['id']}")
    assert await retention.forget_empty_namespaces(gateway.resources, gateway.tenant) >= 1
    assert await retention.forget_empty_namespaces(gateway.resources, gateway.tenant) == 0
    statuses = {what: (await _write(ada, f"patrol/{name}")).status_code for what, name in names.items()}
    assert statuses == {"open": 200, "empty": 404, "full": 200}


async def test_erasing_a_user_takes_its_patrols_from_it(gateway: Gateway) -> None:
    name, user = _name(), _name()
    async with await gateway.new_client(user_id=user) as client:
        session = (await _open(client, kind="patrol", name=name)).json()
        await _write(client, f"patrol/{name}")
        await client.delete(f"/v1/sessions/{session['id']}")
        receipt = (await gateway.client.delete(f"/v1/users/{user}")).json()
        assert receipt["erased"]["working_entries"] == 1
        assert (await _read(gateway.client, f"patrol/{name}")).status_code == 404
        assert (await _read(client, f"patrol/{name}")).status_code == 404


LIKE_NAMES: list[str] = [
    "{name}\u200b",
    "{name}\u0301",
    "\uff54{name}",
    "{name}%00",
    "{name}/..",
    "{name}/.",
    "%2e%2e/{name}",
    "./{name}",
    "{name}//",
    " {name}",
]


@pytest.mark.parametrize("like", LIKE_NAMES)
async def test_a_name_that_resembles_anothers_reaches_nothing(
    gateway: Gateway, ada: httpx.AsyncClient, like: str
) -> None:
    name = _name()
    await _open(ada, id=name)
    await _write(ada, f"session/{name}")
    async with await gateway.new_client(user_id="bob") as bob:
        shown = like.format(name=name)
        # As a body, where only an id of ASCII letters, digits, '_' and '-' is one, and in a path.
        opened = await _open(bob, id=shown.replace("%00", "\x00").replace("%2e", "."))
        assert opened.status_code == 422, opened.text
        for response in (
            await bob.get(f"/v1/sessions/{shown}"),
            await bob.get(f"/v1/working/session/{shown}/note"),
            await bob.get(f"/v1/working/other/%2e%2e/session/{name}/note"),
            await bob.put(f"/v1/working/session/{shown}/note", json=NOTE),
        ):
            assert NOTE["value"] not in response.text
            # A client shortens `a/..`, and so asks for the list of its own sessions.
            assert response.status_code in {403, 404, 405, 422} or name not in response.text, response.text
