"""A tenant sees and changes no record of another tenant, on every route.

A tenant without records sends the requests of each route with the ids of another tenant's records, and one
with ids that no record has. The responses must be equal, or they would reveal what exists. Then a tenant
sends them that has its own records under the same ids. All this is done with the tenant filter and row-level
security, and with row-level security alone. What the owner has is compared when all have asked.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from itertools import groupby
from typing import Any, NamedTuple

import httpx

from shared.foundation.stages import SEARCHABLE_KINDS
from tests.conftest import Gateway, running_gateway
from tests.isolation import sample_tenant, tenant_filter
from tests.isolation.asking import comparable_text, contains_secret, send
from tests.isolation.cases import CASES, SHARED_RESPONSES
from tests.isolation.conftest import IsolationStack
from tests.isolation.ids import Ids, unused_ids
from tests.isolation.sample_tenant import SECRET

Protection = AbstractContextManager[Any]


async def test_every_route_of_the_openapi_document_has_a_case(stack: IsolationStack) -> None:
    document = (await stack.gateway.client.get("/openapi.json")).json()
    routes = {f"{verb.upper()} {path}" for path, verbs in document["paths"].items() for verb in verbs}
    assert routes == set(CASES), "give a new route a case in tests/isolation/cases.py"


async def test_the_owner_has_a_record_in_every_table_with_a_tenant_and_in_every_database(
    stack: IsolationStack,
) -> None:
    kinds = {name.split(" ")[0] for name in stack.initial_state}
    assert kinds >= set(await stack.inspector.tables()), (
        "a leak of a kind that the owner lacks would go unnoticed"
    )
    assert "redis" in kinds
    assert len([kind for kind in kinds if kind.startswith(stack.settings.prefix)]) == len(SEARCHABLE_KINDS)


async def test_another_tenant_sees_and_changes_nothing_and_learns_not_what_exists(
    stack: IsolationStack, protection: Protection
) -> None:
    wrong: list[str] = []
    async with AsyncExitStack() as closing:
        readers = [await closing.enter_async_context(await _new_stranger(stack)) for _ in range(2)]
        with protection:
            for route in sorted(CASES, key=_is_write):
                wrong += await _ask_without_records(stack, route, readers)
    assert not wrong, "\n".join(wrong)
    assert await stack.state() == stack.initial_state


async def _new_stranger(stack: IsolationStack) -> httpx.AsyncClient:
    return await stack.gateway.new_client(stack.stranger())


def _is_write(route: str) -> bool:
    return not (route.startswith("GET") or route.endswith("/search"))


async def _ask_without_records(
    stack: IsolationStack, route: str, readers: Sequence[httpx.AsyncClient]
) -> list[str]:
    """Ask for foreign ids and for unused ones, with a new tenant for each where the requests write."""
    async with AsyncExitStack() as closing:
        clients = readers
        if _is_write(route):
            clients = [await closing.enter_async_context(await _new_stranger(stack)) for _ in readers]
        foreign, unused = [
            await _responses(client, route, ids)
            for client, ids in zip(clients, (stack.ids, unused_ids()), strict=True)
        ]
    pairs = zip(foreign.texts, unused.texts, strict=True)
    reveals = [f"{route} reveals whether the id exists: {a} / {b}" for a, b in pairs if a != b]
    return foreign.wrong + unused.wrong + reveals


class _Responses(NamedTuple):
    """What a tenant was answered, as far as it can be compared, and what is wrong with it."""

    texts: list[str]
    wrong: list[str]


async def _responses(client: httpx.AsyncClient, route: str, ids: Ids) -> _Responses:
    calls = CASES[route](ids)
    responses = [await send(client, route, call) for call in calls]
    wrong = [
        f"{route}: {response.status_code} {response.text}"
        for call, response in zip(calls, responses, strict=True)
        if response.status_code != call.status
        or contains_secret(response)
        # A tenant without records is shown nothing.
        or not (_is_write(route) or route in SHARED_RESPONSES or _is_empty(response))
    ]
    return _Responses([comparable_text(response, ids) for response in responses], wrong)


def _is_empty(response: httpx.Response) -> bool:
    if response.headers["content-type"] == "application/x-ndjson":
        return response.content == b""
    content = response.json() if response.headers["content-type"] == "application/json" else {}
    return not content.get("results") and not content.get("next_cursor")


async def test_a_tenant_with_the_same_ids_reaches_only_its_own_records(
    stack: IsolationStack, protection: Protection
) -> None:
    async with await stack.gateway.new_client(stack.stranger()) as client:
        with protection:
            await sample_tenant.fill_with_same_ids(client, stack.ids)
            for deletes, routes in groupby(sorted(CASES, key=_is_delete), key=_is_delete):
                for route in routes:
                    await _ask_with_own_records(stack, client, route)
                assert await stack.state() == stack.initial_state, f"deletions: {deletes}"


def _is_delete(route: str) -> bool:
    return route.startswith("DELETE")


async def _ask_with_own_records(stack: IsolationStack, client: httpx.AsyncClient, route: str) -> None:
    for call in CASES[route](stack.ids):
        response = await send(client, route, call)
        assert response.status_code < 500, f"{route}: {response.text}"
        assert not contains_secret(response), f"{route}: {response.text}"


async def test_a_tenant_with_the_same_ids_recalls_and_deletes_only_its_own_records(
    stack: IsolationStack, protection: Protection
) -> None:
    """Reach the textual statements that contain their own filter: on tags, links and recalled lines."""
    async with await stack.gateway.new_client(stack.stranger()) as client:
        with protection as statements:
            await sample_tenant.fill_with_same_ids(client, stack.ids)
            await _recall_and_delete(client, stack.ids)
    assert await stack.state() == stack.initial_state
    if statements is not None:
        _assert_reached(statements)


async def _recall_and_delete(client: httpx.AsyncClient, ids: Ids) -> None:
    turns = (await client.get(f"/v1/sessions/{ids.session}/turns")).json()
    assert len(turns["results"]) == 1
    for tags in (["mine"], ["mine", "too"]):
        body = {"content": ids.content, "tags": tags, **sample_tenant.scope(ids)}
        saved = await client.post("/v1/memories", json=body)
        assert saved.json()["id"] == ids.memory, saved.text
        assert not contains_secret(saved)
    for path in (f"/v1/memories/{ids.memory}", f"/v1/memories/{ids.archived}", f"/v1/users/{ids.user}"):
        deleted = await client.delete(path)
        assert deleted.status_code == 200, deleted.text
        assert not contains_secret(deleted)


def _assert_reached(statements: tenant_filter.RewrittenStatements) -> None:
    for fragment in ("superseded_by &&", "recalled_ids &&"):
        assert any(fragment in sql for sql in statements.unfiltered), f"never ran: {fragment}"


async def test_filter_and_row_level_security_each_suffice_and_without_both_a_tenant_would_see_all(
    stack: IsolationStack,
) -> None:
    """The other tests can fail: with neither filter nor policies, the secret is exported."""
    settings = stack.settings.model_copy(update={"postgres_role": ""})
    async with running_gateway(settings, stack.stranger()) as unprotected:
        assert not await _exports_secret(unprotected, stack.ids)
        with tenant_filter.disabled(unprotected.resources.postgres.engine):
            assert await _exports_secret(unprotected, stack.ids)


async def _exports_secret(gateway: Gateway, ids: Ids) -> bool:
    response = await gateway.client.get("/v1/memories/export", params=sample_tenant.scope(ids))
    return SECRET in response.text
