"""Decision 7, I6, Errors: a tenant sees and changes nothing of another's, route by route.

Each route is asked twice by a tenant that has nothing: with the ids of another tenant's things and
with ids that nobody has. The answers must be the same, or they would tell what exists. Then a
tenant that has things of its own under all of those ids asks. All of it with both locks, and with
row-level security alone.
"""

from contextlib import AbstractContextManager
from typing import Any

import httpx
import pytest

from tests.conftest import Gateway, serving
from tests.isolation import planted, tenant_filter
from tests.isolation.asking import ask, betrays, told
from tests.isolation.cases import CASES, EVERYBODYS
from tests.isolation.conftest import IsolationStack
from tests.isolation.ids import Ids, made_up
from tests.isolation.planted import CANARY

Locks = AbstractContextManager[Any]


async def test_every_route_of_the_openapi_document_has_a_case_here(house: IsolationStack) -> None:
    document = (await house.gateway.client.get("/openapi.json")).json()
    routes = {f"{verb.upper()} {path}" for path, verbs in document["paths"].items() for verb in verbs}
    assert routes == set(CASES), "give a new route a case in tests/isolation/cases.py"


async def test_the_owner_has_something_in_every_table_a_tenant_has_and_in_every_store(
    house: IsolationStack,
) -> None:
    kinds = {name.split(" ")[0] for name in house.planted}
    assert kinds >= set(await house.eye.tables()), "what is not planted can't be seen to leak"
    assert "redis" in kinds
    assert len([kind for kind in kinds if kind.startswith(house.settings.prefix)]) == 4


@pytest.mark.parametrize("route", CASES)
async def test_a_stranger_sees_and_changes_nothing_and_learns_not_even_what_exists(
    house: IsolationStack, locks: Locks, route: str
) -> None:
    with locks:
        foreign = await _answers(house, route, house.ids)
        nowhere = await _answers(house, route, made_up())
    assert foreign == nowhere, "an answer tells whether the id exists"
    assert await house.state() == house.planted


async def _answers(house: IsolationStack, route: str, ids: Ids) -> list[str]:
    async with await house.gateway.another(house.stranger()) as client:
        calls = CASES[route](ids)
        answers = [await ask(client, route, call) for call in calls]
    for call, answer in zip(calls, answers, strict=True):
        assert answer.status_code == call.status, answer.text
        assert not betrays(answer), answer.text
        if (route.startswith("GET") or route.endswith("/search")) and route not in EVERYBODYS:
            assert _is_empty(answer), answer.text
    return [told(answer, ids) for answer in answers]


def _is_empty(answer: httpx.Response) -> bool:
    if answer.headers["content-type"] == "application/x-ndjson":
        return answer.content == b""
    listed = answer.json() if answer.headers["content-type"] == "application/json" else {}
    return not listed.get("results") and not listed.get("next_cursor")


async def test_a_twin_with_the_same_ids_reaches_only_its_own(house: IsolationStack, locks: Locks) -> None:
    async with await house.gateway.another(house.stranger()) as client:
        with locks:
            await planted.make_twin(client, house.ids)
            for route in sorted(CASES, key=_ends_something):
                await _ask_as_twin(house, client, route)


def _ends_something(route: str) -> bool:
    return route.startswith("DELETE")


async def _ask_as_twin(house: IsolationStack, client: httpx.AsyncClient, route: str) -> None:
    for call in CASES[route](house.ids):
        answer = await ask(client, route, call)
        assert answer.status_code < 500, f"{route}: {answer.text}"
        assert not betrays(answer), f"{route}: {answer.text}"
    if not route.startswith("GET"):
        assert await house.state() == house.planted, route


async def test_what_a_twin_recalls_and_forgets_is_its_own(house: IsolationStack, locks: Locks) -> None:
    """The statements of text that write out their own filter: tags, links, lines recalled with turns."""
    async with await house.gateway.another(house.stranger()) as client:
        with locks as seen:
            await planted.make_twin(client, house.ids)
            await _recall_and_forget(client, house.ids)
    assert await house.state() == house.planted
    if seen is not None:
        _assert_reached(seen)


async def _recall_and_forget(client: httpx.AsyncClient, ids: Ids) -> None:
    turns = (await client.get(f"/v1/sessions/{ids.session}/turns")).json()
    assert len(turns["results"]) == 1
    for tags in (["mine"], ["mine", "too"]):
        body = {"content": ids.content, "tags": tags, **planted.scope(ids)}
        saved = await client.post("/v1/memories", json=body)
        assert saved.json()["id"] == ids.memory, saved.text
        assert not betrays(saved)
    for path in (f"/v1/memories/{ids.memory}", f"/v1/memories/{ids.archived}", f"/v1/users/{ids.user}"):
        gone = await client.delete(path)
        assert gone.status_code == 200, gone.text
        assert not betrays(gone)


def _assert_reached(seen: tenant_filter.Seen) -> None:
    for words in ("NOT tags @>", "superseded_by &&", "recalled_ids &&"):
        assert any(words in statement for statement in seen.unfiltered), f"never ran: {words}"


async def test_each_lock_holds_alone_and_without_both_a_stranger_would_see(house: IsolationStack) -> None:
    """The other tests can fail: with neither filter nor policies, the canary comes through."""
    settings = house.settings.model_copy(update={"postgres_role": ""})
    async with serving(settings, house.stranger()) as unlocked:
        assert not await _sees(unlocked, house.ids)
        with tenant_filter.switched_off(unlocked.resources.postgres.engine):
            assert await _sees(unlocked, house.ids)


async def _sees(gateway: Gateway, ids: Ids) -> bool:
    answer = await gateway.client.get("/v1/memories/export", params=planted.scope(ids))
    return CANARY in answer.text
