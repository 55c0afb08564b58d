"""SD4: `loci spend` in a terminal of any width."""

from decimal import Decimal

import pytest

from services.commands import spend
from shared.platform.spend.report import Row

_COST = "12358029858017.557829776543210995"


def test_sd4_an_amount_that_is_too_wide_for_the_terminal_is_wrapped_and_never_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = {"input_tokens": 10**12, "output_tokens": 0, "cached_tokens": 0}
    row: Row = {
        "model": "m",
        "charges": 1,
        **tokens,
        "cost_usd": Decimal(_COST),
        "unpriced": 0,
        "estimated": 0,
    }
    monkeypatch.setenv("COLUMNS", "60")
    spend.print_report(["model"], [row], [])
    lines = [line.split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert "".join(cells[6].strip() for cells in lines) == _COST
