"""The totals of a session's usage, as its row holds them."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson
from sqlalchemy import RowMapping

from shared.platform.spend import money

COLUMNS = (
    "total_input_tokens",
    "total_output_tokens",
    "total_cached_tokens",
    "total_cost_usd",
    "unpriced_charges",
    "spend_updated_at",
)
NONE_YET: dict[str, Any] = {
    "total_input_tokens": 0,
    "total_output_tokens": 0,
    "total_cached_tokens": 0,
    "total_cost_usd": Decimal(0),
    "last_updated": None,
    "unpriced": 0,
}


def of(row: RowMapping) -> dict[str, Any] | None:
    """Return a session's totals from its row, or None before the first charge."""
    if row["spend_updated_at"] is None:
        return None
    kept = {name: row[name] for name in COLUMNS[:4]}
    return kept | {"last_updated": row["spend_updated_at"], "unpriced": row["unpriced_charges"]}


def shown(totals: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return totals as JSON, the cost as a number with its own digits."""
    if totals is None:
        return None
    at: datetime | None = totals["last_updated"]
    told = at.isoformat().replace("+00:00", "Z") if at else None
    return {**totals, "total_cost_usd": money.to_json_number(totals["total_cost_usd"]), "last_updated": told}


def rendered(totals: Mapping[str, Any] | None) -> bytes:
    """Return totals as the file `spend.json` of a session, in the shape of the source system."""
    told = shown(totals or NONE_YET) or {}
    told.pop("unpriced", None)
    return orjson.dumps(told, option=orjson.OPT_INDENT_2)
