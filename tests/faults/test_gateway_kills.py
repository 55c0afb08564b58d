"""The gateway may die at any moment of a save: who tries again under the same key has saved once (F2)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.history import History, Tally
from tests.faults.processes import Fleet


@pytest.mark.parametrize("kills", [30, pytest.param(500, marks=pytest.mark.long)])
async def test_a_gateway_killed_mid_save_loses_no_acknowledgement_and_doubles_no_memory(
    make_fleet: Callable[..., Fleet],
    remember: Callable[..., Any],
    tell: Callable[[Tally], None],
    kills: int,
) -> None:
    fleet = make_fleet()
    gateway = fleet.serve()
    history: History = await remember(fleet)
    async with history.agents(6):
        for _ in range(kills):
            await history.more(1, 10)
            gateway.kill()
            gateway = fleet.start("serve")
    fleet.start("work")
    fleet.start("beat")
    await history.quiet(within=60)
    tally = await history.check("gateway killed mid-save", kills)
    tell(tally)
    assert tally.retried >= kills / 2, f"seed {history.seed}: the kills hit too few saves: {tally}"
