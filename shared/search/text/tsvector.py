"""Keyword search in Postgres, for when the index is unavailable.

Texts are split by the tokenizer of the index, so that both searches find the same records.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Text, cast, func
from sqlalchemy.dialects.postgresql import TSQUERY

from shared.search.text.tokenizer import tokenize

MAX_TERMS = 20_000
"""Distinct terms that are stored for one text, because a tsvector has at most one megabyte."""


def terms_of(text: str) -> list[str]:
    """Return the distinct terms of a text, for its tsvector column."""
    return sorted(set(tokenize(text)))[:MAX_TERMS]


def matches_any(
    column: Column[Any], terms: Sequence[str]
) -> tuple[ColumnElement[bool], ColumnElement[float]]:
    """Return the condition that a row has any of these terms, and a rough rank by how many it has."""
    query = cast(cast(_any_of(terms), Text), TSQUERY)
    return column.op("@@")(query), func.ts_rank(column, query)


def _any_of(terms: Sequence[str]) -> str:
    escaped = (term.replace("\\", "\\\\").replace("'", "''") for term in terms)
    return " | ".join(f"'{term}'" for term in escaped)
