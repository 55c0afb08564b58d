"""SD1: money is Decimal from the price list to the response; without a price the cost is unknown."""

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.foundation import config, errors
from shared.platform.spend import money, price_lists
from shared.platform.spend.price_lists import Rates
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
    listed = price_lists.listed_prices(_settings(tmp_path, text))
    assert listed["gpt-4o"] == Rates(Decimal("0.1"), Decimal("0.2"), Decimal("0.1"), "file")
    assert listed["own:8b"].input == Decimal("0.000000000001")
    assert listed["gpt-4o-mini"].source == "built-in"


def test_sd1_the_built_in_list_says_when_it_was_renewed_and_prices_models_of_several_providers() -> None:
    assert re.search(r"renewed on 20\d\d-\d\d-\d\d", price_lists.BUILT_IN.read_text())
    models = [
        "gpt-5",
        "gpt-5-mini-2025-08-07",
        "claude-sonnet-4-20250514",
        "claude-haiku-4-5",
        "gpt-4.1-nano",
    ]
    models += ["gemini-2.5-flash", "mistral-embed", "voyage-3.5", "text-embedding-3-small"]
    assert price_lists.models_without_price(config.load(), models) == []
    assert len(price_lists.listed_prices(config.load())) > 60


@pytest.mark.parametrize(
    "model", ["gpt-5-vision", "gpt-4o-audio-preview", "claude-opus-9", "my-gpt-4o", "gpt-5*x"]
)
def test_sd1_a_model_that_resembles_a_listed_one_has_no_price(model: str) -> None:
    assert price_lists.models_without_price(config.load(), [model]) == [model]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-5", 3),
        ("gpt-5-nano", 2),
        ("gpt-5-nano-large", 2),
        ("gpt-5-tiny", 1),
        ("gpt-4o", 9),
        ("other", None),
    ],
)
def test_sd1_a_pattern_prices_every_model_that_begins_like_it_after_exact_names_and_longer_patterns(
    tmp_path: Path, model: str, expected: int | None
) -> None:
    prices_by_name = {"gpt-5*": 1, "gpt-5-nano*": 2, "gpt-5": 3, "gpt-4*": 9}
    text = "\n".join(f'[models."{name}"]\ninput = {price}' for name, price in prices_by_name.items())
    settings = _settings(tmp_path, text)
    assert price_lists.models_without_price(settings, [model]) == ([] if expected else [model])
    rates = price_lists.find_rates(model, price_lists.read_lists(settings))
    assert (rates and rates.input) == expected, "the operator's pattern goes before a built-in exact name"


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
        price_lists.listed_prices(_settings(tmp_path, text))


def test_sd1_a_missing_price_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.Misconfigured, match="LOCI_PRICES_FILE"):
        price_lists.listed_prices(config.load(prices_file=tmp_path / "missing.toml"))


def test_sd1_without_a_price_the_cost_is_unknown_and_not_zero() -> None:
    assert price_lists.cost_of(None, Usage(10, 10)) is None
