"""What models cost: the tenant's own prices, else the operator's file, else the built-in list.

Names count to the letter: a price that is guessed from a similar name is wrong in silence, while a
model without a price shows itself, its charges having an unknown cost. Unknown is never zero.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import RowMapping
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors
from shared.foundation.config import Settings
from shared.platform.spend import money, queries
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
        """Return input · r_in + output · r_out + cached · r_cached, per million, exactly."""
        parts = ((usage.input, self.input), (usage.output, self.output), (usage.cached, self.cached))
        return money.total([money.cost(tokens, rate) for tokens, rate in parts])

    def max_cost(self, bound: Usage) -> Decimal:
        """Return what a bound can cost at most: nobody knows before which tokens are cached."""
        dearest = max(self.input, self.cached)
        return money.total([money.cost(bound.input, dearest), money.cost(bound.output, self.output)])

    def to_json(self, model: str) -> dict[str, Any]:
        """Return a price as JSON."""
        amounts = {name: money.to_json_number(getattr(self, name)) for name in ("input", "output", "cached")}
        return {"model": model, **amounts, "source": self.source}


def cost_of(rates: Rates | None, usage: Usage) -> Decimal | None:
    """Return what a call cost, or None where no price is known."""
    return None if rates is None else rates.cost(usage)


async def effective_prices(
    connection: AsyncConnection, settings: Settings, tenant: str, models: Iterable[str]
) -> dict[str, Rates]:
    """Return the prices of these models; one that has none is not in the answer."""
    names = set(models)
    own = await queries.prices(connection, tenant, names)
    known = listed_prices(settings)
    return {name: known[name] for name in names if name in known} | {row["model"]: of_row(row) for row in own}


async def all_prices(connection: AsyncConnection, settings: Settings, tenant: str) -> dict[str, Rates]:
    """Return every price that counts for a tenant, by model."""
    own = {row["model"]: of_row(row) for row in await queries.prices(connection, tenant)}
    return dict(sorted((listed_prices(settings) | own).items()))


def of_row(row: RowMapping) -> Rates:
    """Read a tenant's own price."""
    return Rates(row["input"], row["output"], row["cached"], "tenant")


def listed_prices(settings: Settings) -> dict[str, Rates]:
    """Return the operator's and the built-in prices; raise Misconfigured for a file that can't be read."""
    own = {} if settings.prices_file is None else _read(settings.prices_file, "file")
    return _read(BUILT_IN, "built-in") | own


@lru_cache
def _read(path: Path, source: str) -> dict[str, Rates]:
    try:
        told = tomllib.loads(path.read_text(), parse_float=Decimal)
        return {name: _rates(one, source) for name, one in told["models"].items()}
    except (OSError, ValueError, ArithmeticError, KeyError, TypeError, AttributeError) as error:
        rule = 'must be TOML with a table [models."name"] for each model: input, output, cached (USD ≥ 0)'
        raise errors.Misconfigured(f"LOCI_PRICES_FILE {path}: {rule}: {error}") from None


def _rates(told: Mapping[str, Any], source: str) -> Rates:
    amounts = {name: _amount(value) for name, value in told.items()}
    if not set(amounts) <= {"input", "output", "cached"}:
        raise ValueError(f"unknown names in {sorted(amounts)}")
    given = amounts["input"]
    return Rates(given, amounts.get("output", Decimal(0)), amounts.get("cached", given), source)


def _amount(value: Any) -> Decimal:
    amount = Decimal(value)
    if isinstance(value, bool) or not 0 <= amount <= MAX_PRICE:
        raise ValueError(f"{value} is not a price from 0 to {MAX_PRICE}")
    if amount != round(amount, DECIMALS):
        raise ValueError(f"{value} has more than {DECIMALS} decimals")
    return amount
