"""SD1: money is Decimal from the price list to the response; without a price the cost is unknown."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.foundation import config, errors
from shared.platform.spend import money, prices
from shared.platform.spend.prices import Rates
from shared.platform.spend.usage import Usage

_tokens = st.integers(0, 10**12)
_rates = st.decimals(0, 10**6, places=12, allow_nan=False)


@given(_tokens, _tokens, _tokens, _rates, _rates, _rates)
def test_sd1_the_cost_is_exact_to_the_last_digit(
    uncached: int, output: int, cached: int, r_in: Decimal, r_out: Decimal, r_cached: Decimal
) -> None:
    cost = Rates(r_in, r_out, r_cached).cost(Usage(uncached, output, cached))
    exact = uncached * Fraction(r_in) + output * Fraction(r_out) + cached * Fraction(r_cached)
    assert Fraction(cost) == exact / 1_000_000
    assert Fraction(orjson.dumps(money.to_json_number(cost)).decode()) == Fraction(cost)


@given(_tokens, _tokens, st.floats(0, 1), _rates, _rates, _rates)
def test_sd3_no_call_within_its_bound_costs_more_than_max_cost(
    prompt: int, output: int, cached_ratio: float, r_in: Decimal, r_out: Decimal, r_cached: Decimal
) -> None:
    rates, cached = Rates(r_in, r_out, r_cached), int(prompt * cached_ratio)
    assert rates.cost(Usage(prompt - cached, output, cached)) <= rates.max_cost(Usage(prompt, output))


@pytest.mark.parametrize(
    ("amount", "digits"),
    [("0.10", "0.1"), ("1E-7", "0.0000001"), ("100", "100"), ("0", "0"), ("0.000", "0"), ("12.50", "12.5")],
)
def test_sd1_an_amount_is_written_without_an_exponent_or_trailing_zeros(amount: str, digits: str) -> None:
    assert money.to_text(Decimal(amount)) == digits


def _settings(tmp_path: Path, text: str) -> config.Settings:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    return config.load(prices_file=file)


def test_sd1_the_operators_prices_go_before_the_built_in_ones(tmp_path: Path) -> None:
    text = '[models."gpt-4o"]\ninput = 0.1\noutput = 0.2\n[models."own:8b"]\ninput = "0.000000000001"\n'
    listed = prices.listed_prices(_settings(tmp_path, text))
    assert listed["gpt-4o"] == Rates(Decimal("0.1"), Decimal("0.2"), Decimal("0.1"), "file")
    assert listed["own:8b"].input == Decimal("0.000000000001")
    assert listed["gpt-4o-mini"].source == "built-in"


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        "models = 3",
        "[models.m]\noutput = 1",
        "[models.m]\ninput = -1",
        "[models.m]\ninput = nan",
        "[models.m]\ninput = true",
        '[models.m]\ninput = "much"',
        "[models.m]\ninput = 1\ninptu = 2",
        "[models.m]\ninput = 0.0000000000001",
        "[models]\nm = 3",
    ],
)
def test_sd1_a_price_file_that_cannot_be_read_is_named_with_its_variable(tmp_path: Path, text: str) -> None:
    with pytest.raises(errors.Misconfigured, match="LOCI_PRICES_FILE"):
        prices.listed_prices(_settings(tmp_path, text))


def test_sd1_a_missing_price_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.Misconfigured, match="LOCI_PRICES_FILE"):
        prices.listed_prices(config.load(prices_file=tmp_path / "missing.toml"))


def test_sd1_without_a_price_the_cost_is_unknown_and_not_zero() -> None:
    assert prices.cost_of(None, Usage(10, 10)) is None
