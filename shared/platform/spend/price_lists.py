"""The prices of models that the operator's file and the built-in list have, and how a model finds its own.

A name that ends in `*` is a pattern: it stands for every model whose name begins like it. Within one list an
exact name goes before a pattern, and a longer pattern before a shorter one. Nothing else is similar: a price
guessed from a resembling name would be wrong without anybody noticing. The charges of a model without a
price have an unknown cost, which is never zero.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from shared.foundation import errors
from shared.foundation.config import Settings
from shared.platform.spend import money
from shared.platform.spend.usage import Usage

BUILT_IN = Path(__file__).with_name("prices.toml")
MAX_PRICE = 1_000_000
DECIMALS = 12


@dataclass(frozen=True, slots=True)
class Rates:
    """USD per million tokens."""

    input: Decimal
    output: Decimal
    cached: Decimal
    source: str = "built-in"

    def cost(self, usage: Usage) -> Decimal:
        """Return the exact cost in USD: the sum of tokens times rate over input, output and cached."""
        parts = ((usage.input, self.input), (usage.output, self.output), (usage.cached, self.cached))
        return money.total([money.cost(tokens, rate) for tokens, rate in parts])

    def max_cost(self, bound: Usage) -> Decimal:
        """Return the highest cost in USD of a call within `bound`.

        Before the call nobody knows which input tokens are cached, so the higher of both rates counts.
        """
        highest_rate = max(self.input, self.cached)
        return money.total([money.cost(bound.input, highest_rate), money.cost(bound.output, self.output)])

    def to_json(self, model: str) -> dict[str, Any]:
        """Return the price of a model as JSON."""
        amounts = {name: money.to_json_number(getattr(self, name)) for name in ("input", "output", "cached")}
        return {"model": model, **amounts, "source": self.source}


def cost_of(rates: Rates | None, usage: Usage) -> Decimal | None:
    """Return the cost of a call in USD, or None if the model has no price."""
    return None if rates is None else rates.cost(usage)


def models_without_price(settings: Settings, models: Iterable[str]) -> list[str]:
    """Return those of the models that neither the operator's nor the built-in list has a price of."""
    return [name for name in models if find_rates(name, read_lists(settings)) is None]


def find_rates(name: str, lists: Iterable[Mapping[str, Rates]]) -> Rates | None:
    """Return the price of a model in the first list that has one."""
    matches = (_match(name, price_list) for price_list in lists)
    return next((rates for rates in matches if rates is not None), None)


def _match(name: str, price_list: Mapping[str, Rates]) -> Rates | None:
    if name in price_list:
        return price_list[name]
    fitting = [pattern for pattern in price_list if is_pattern(pattern) and name.startswith(pattern[:-1])]
    return price_list[max(fitting, key=len)] if fitting else None


def is_pattern(model: str) -> bool:
    """Tell whether the name of a price stands for several models."""
    return model.endswith("*")


def listed_prices(settings: Settings) -> dict[str, Rates]:
    """Return the operator's and the built-in prices, by model.

    Raise errors.Misconfigured for a file that can't be read.
    """
    from_file, built_in = read_lists(settings)
    return built_in | from_file


def read_lists(settings: Settings) -> tuple[dict[str, Rates], dict[str, Rates]]:
    """Return the operator's prices and the built-in ones. Raises as `listed_prices` does."""
    from_file = {} if settings.prices_file is None else _read_file(settings.prices_file, "file")
    return from_file, _read_file(BUILT_IN, "built-in")


@lru_cache
def _read_file(path: Path, source: str) -> dict[str, Rates]:
    try:
        content = tomllib.loads(path.read_text(), parse_float=Decimal)
        return {name: _parse_rates(table, source) for name, table in content["models"].items()}
    except (OSError, ValueError, ArithmeticError, KeyError, TypeError, AttributeError) as error:
        rule = 'must be TOML with a table [models."name"] for each model: input, output, cached (USD ≥ 0)'
        raise errors.Misconfigured(f"LOCI_PRICES_FILE {path}: {rule}: {error}") from None


def _parse_rates(table: Mapping[str, Any], source: str) -> Rates:
    amounts = {name: _parse_amount(value) for name, value in table.items()}
    if not set(amounts) <= {"input", "output", "cached"}:
        raise ValueError(f"unknown names in {sorted(amounts)}")
    input_rate = amounts["input"]
    return Rates(input_rate, amounts.get("output", Decimal(0)), amounts.get("cached", input_rate), source)


def _parse_amount(value: Any) -> Decimal:
    amount = Decimal(value)
    if isinstance(value, bool) or not 0 <= amount <= MAX_PRICE:
        raise ValueError(f"{value} is not a price from 0 to {MAX_PRICE}")
    if amount != round(amount, DECIMALS):
        raise ValueError(f"{value} has more than {DECIMALS} decimals")
    return amount
