"""Decision 7, I6, Errors: a tenant sees and changes nothing of another's, route by route.

Each route is asked twice by a tenant that has nothing: with the ids of another tenant's things and
with ids that nobody has. The answers must be the same, or they would tell what exists. Then a
tenant that has things of its own under all of those ids asks. All of it with both locks, and with
row-level security alone.
"""

from contextlib import AbstractContextManager
from typing import Any

import asyncpg
import httpx
import pytest

from shared import config
from tests.conftest import Gateway, serving
from tests.isolation import planted, state, tenant_filter
from tests.isolation.asking import ask, betrays, told
from tests.isolation.cases import CASES
from tests.isolation.conftest import House
from tests.isolation.ids import Ids, made_up
from tests.isolation.planted import CANARY

Locks = AbstractContextManager[Any]


async def test_every_route_of_the_openapi_document_has_a_case_here(house: House) -> None:
    document = (await house.gateway.client.get("/openapi.json")).json()
    routes = {f"{verb.upper()} {path}" for path, verbs in document["paths"].items() for verb in verbs}
    assert routes == set(CASES), "give a new route a case in tests/isolation/cases.py"


async def test_the_planted_tenant_has_rows_in_every_table_a_tenant_has(house: House) -> None:
    connection = await asyncpg.connect(
        config.required(house.settings.postgres_url, "LOCI_POSTGRES_URL")
    )
    try:
        tables = await state.tenant_tables(connection)
    finally:
        await connection.close()
    rows = await state.of_tenant(house.settings, house.gateway.tenant)
    bare = {table for table in tables if not any(name.startswith(f"{table} (") for name in rows)}
    assert not bare, "what is not planted can't be seen to leak"
    stores = {name.split(" ")[0] for name in rows}
    assert "redis" in stores
    assert len([name for name in stores if name.startswith(house.settings.prefix)]) == 3


@pytest.mark.parametrize("route", CASES)
async def test_a_stranger_sees_and_changes_nothing_and_learns_not_even_what_exists(
    house: House, locks: Locks, route: str
) -> None:
    before = await _owned(house)
    with locks:
        foreign = await _answers(house, route, house.ids, house.stranger())
        nowhere = await _answers(house, route, made_up(), house.stranger())
    assert foreign == nowhere, "an answer tells whether the id exists"
    assert await _owned(house) == before


async def _owned(house: House) -> state.State:
    await house.gateway.resources.writer.close()
    return await state.of_tenant(house.settings, house.gateway.tenant)


async def _answers(house: House, route: str, ids: Ids, tenant: str) -> list[str]:
    async with await house.gateway.another(tenant) as client:
        calls = CASES[route](ids)
        answers = [await ask(client, route, call) for call in calls]
    for call, answer in zip(calls, answers, strict=True):
        assert answer.status_code == call.status, answer.text
        assert not betrays(answer), answer.text
        if route.startswith("GET") or route.endswith("/search"):
            assert _is_empty(answer), answer.text
    return [told(answer, ids) for answer in answers]


def _is_empty(answer: httpx.Response) -> bool:
    if answer.headers["content-type"] == "application/x-ndjson":
        return answer.content == b""
    listed = answer.json() if answer.headers["content-type"] == "application/json" else {}
    return not listed.get("results") and not listed.get("next_cursor")


@pytest.mark.parametrize("route", CASES)
async def test_a_twin_with_the_same_ids_reaches_only_its_own(house: House, locks: Locks, route: str) -> None:
    before = await _owned(house)
    async with await house.gateway.another(house.stranger()) as client:
        with locks:
            await planted.make_twin(client, house.ids)
            answers = [await ask(client, route, call) for call in CASES[route](house.ids)]
    for answer in answers:
        assert answer.status_code < 500, answer.text
        assert not betrays(answer), answer.text
    assert await _owned(house) == before


async def test_a_twins_whole_life_leaves_the_owner_as_it_was(house: House, locks: Locks) -> None:
    """Recall, repeat with tags, forget, erase: the statements of text that write out their own filter."""
    before, ids = await _owned(house), house.ids
    async with await house.gateway.another(house.stranger()) as client:
        with locks as seen:
            await planted.make_twin(client, ids)
            await _live(client, ids)
    assert await _owned(house) == before
    if seen is not None:
        _assert_reached(seen)


async def _live(client: httpx.AsyncClient, ids: Ids) -> None:
    scope = planted.scope(ids)
    turn = await client.post(f"/v1/sessions/{ids.session}/context", json={"message": ids.content})
    assert [one["id"] for one in turn.json()["recalled"]] or turn.json()["messages"]
    for fact in ({"tags": ["mine"]}, {"tags": ["mine", "too"]}):
        saved = await client.post("/v1/memories", json={"content": ids.content, **scope, **fact})
        assert saved.status_code == 201, saved.text
        assert not betrays(saved)
    for path in (f"/v1/memories/{ids.memory}", f"/v1/memories/{ids.archived}", f"/v1/users/{ids.user}"):
        gone = await client.delete(path)
        assert gone.status_code == 200, gone.text
        assert not betrays(gone)


def _assert_reached(seen: tenant_filter.Seen) -> None:
    text_statements = ("NOT tags @>", "superseded_by &&", "recalled_ids &&")
    for words in text_statements:
        assert any(words in statement for statement in seen.unfiltered), f"never ran: {words}"


async def test_without_both_locks_a_stranger_would_see(house: House) -> None:
    """The other tests can fail: with neither the filter nor the policies, the canary comes through."""
    settings = house.settings.model_copy(update={"postgres_role": ""})
    async with serving(settings, house.stranger()) as unlocked:
        assert not await _sees(unlocked, house.ids), "the filter alone holds, too"
        with tenant_filter.switched_off(unlocked.resources.postgres.engine):
            assert await _sees(unlocked, house.ids)


async def _sees(gateway: Gateway, ids: Ids) -> bool:
    answer = await gateway.client.get(f"/v1/memories/{ids.memory}")
    print(answer.text); return CANARY in answer.text
