"""A gateway is killed at any moment of a save: a retry under the same key saves the memory once."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.history import History, RunFigures
from tests.faults.processes import Fleet
from tests.faults.rivals import Rivals


@pytest.mark.parametrize("kills", [12, pytest.param(500, marks=pytest.mark.long)])
async def test_a_gateway_killed_mid_save_loses_no_acknowledgement_and_doubles_no_memory(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    report: Callable[[RunFigures], None],
    kills: int,
) -> None:
    fleet = make_fleet()
    gateway = fleet.serve()
    history: History = await remember(fleet)
    rivals = Rivals(history.client)
    async with rivals.writing(1), history.agents(6):
        for _ in range(kills):
            await history.more(1, 10)
            gateway.kill()
            gateway = fleet.start("serve")
    fleet.start("work")
    fleet.start("beat")
    await history.quiet(within=60)
    figures = await history.check("gateway killed mid-save", kills)
    report(figures)
    await rivals.check()
    assert figures.retried >= kills / 2, f"seed {history.seed}: the kills hit too few saves: {figures}"
