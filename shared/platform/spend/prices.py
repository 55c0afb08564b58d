"""Prices of models: the tenant's own, else those of the operator's file, else the built-in list.

`price_lists` says how a model finds its price in a list.
"""

from collections.abc import Iterable

from sqlalchemy import RowMapping

from shared.foundation.config import Settings
from shared.infra.transaction import Transaction
from shared.platform.spend import price_lists, queries
from shared.platform.spend.price_lists import Rates


async def effective_prices(tx: Transaction, settings: Settings, models: Iterable[str]) -> dict[str, Rates]:
    """Return the prices of these models, by model. A model without a price is missing."""
    names = set(models)
    rows = await queries.prices(tx, names)
    lists = [{row["model"]: _from_row(row) for row in rows}, *price_lists.read_lists(settings)]
    found = {name: price_lists.find_rates(name, lists) for name in names}
    return {name: rates for name, rates in found.items() if rates is not None}


async def all_prices(tx: Transaction, settings: Settings) -> dict[str, Rates]:
    """Return every price that applies to a tenant, by model."""
    tenant_prices = {row["model"]: _from_row(row) for row in await queries.prices(tx)}
    return dict(sorted((price_lists.listed_prices(settings) | tenant_prices).items()))


def _from_row(row: RowMapping) -> Rates:
    return Rates(row["input"], row["output"], row["cached"], "tenant")
