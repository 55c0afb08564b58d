"""A connection is cut at COMMIT, so the outcome is unknown: the Idempotency-Key prevents duplicates."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.foundation import config
from tests.conftest import Stores, running_gateway
from tests.draining import drain
from tests.faults.history import History, RunFigures
from tests.faults.proxy import Proxy

COMMITS = 5  # of one save: API key, save and confirmation, then some of the next save


@pytest.mark.parametrize("arrives", [True, False], ids=["after it arrived", "before it arrived"])
async def test_a_save_whose_connection_is_cut_at_any_commit_is_saved_once(
    make_settings: Callable[..., config.Settings],
    stores: Stores,
    tenant: str,
    report: Callable[[RunFigures], None],
    *,
    arrives: bool,
) -> None:
    with Proxy(stores.create_database()) as proxy:
        settings = make_settings(postgres_url=proxy.url, prefix=f"cut{tenant[2:]}")
        async with running_gateway(settings, tenant) as gateway:
            history = History(gateway.client)
            for nth in range(1, COMMITS + 1):
                proxy.cut(b"COMMIT", nth, arrives=arrives)
                while proxy.cuts < nth:
                    await history.save()
            await drain(gateway.resources)
            figures = await history.check(f"cut at COMMIT, {'after' if arrives else 'before'}", proxy.cuts)
            report(figures)
            assert figures.retried >= 2, f"seed {history.seed}: the cuts met no save: {figures}"


@pytest.mark.parametrize("arrives", [True, False], ids=["after it arrived", "before it arrived"])
async def test_a_turn_whose_connection_is_cut_at_any_commit_is_recorded_once(
    make_settings: Callable[..., config.Settings], stores: Stores, tenant: str, *, arrives: bool
) -> None:
    with Proxy(stores.create_database()) as proxy:
        settings = make_settings(postgres_url=proxy.url, prefix=f"cut{tenant[2:]}")
        async with running_gateway(settings, tenant) as gateway:
            await gateway.client.post("/v1/sessions", json={"id": "s"})
            for nth in range(1, COMMITS + 1):
                proxy.cut(b"COMMIT", nth, arrives=arrives)
                while proxy.cuts < nth:
                    await _send_turn(gateway, f"turn {nth}")
            await gateway.resources.index_writer.close()
            turns = (await gateway.client.get("/v1/sessions/s/turns", params={"last": 50})).json()["results"]
            assert [turn["seq"] for turn in turns] == list(range(1, len(turns) + 1))
            assert len({turn["content"] for turn in turns}) == COMMITS


async def _send_turn(gateway: Any, message: str) -> None:
    """Request the context of a message under one key until it succeeds."""
    while True:
        answer = await gateway.client.post(
            "/v1/sessions/s/context", json={"message": message}, headers={"idempotency-key": message}
        )
        if answer.status_code == 200:
            return
        assert answer.status_code == 503 or "still running" in answer.text, answer.text
