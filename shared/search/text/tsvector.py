"""The words of rows in Postgres: the same tokenizer's, so that both searches find the same."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Text, cast, func
from sqlalchemy.dialects.postgresql import TSQUERY

from shared.search.text.tokenizer import tokenize

MAX_TERMS = 20_000
"""Distinct words kept of one text: a tsvector holds a megabyte."""


def terms_of(text: str) -> list[str]:
    """Return the distinct words under which a text is found without the index."""
    return sorted(set(tokenize(text)))[:MAX_TERMS]


def matches_any(
    column: Column[Any], terms: Sequence[str]
) -> tuple[ColumnElement[bool], ColumnElement[float]]:
    """Return the condition that a row holds any of these words, and a rough rank by how many."""
    query = cast(cast(_any_of(terms), Text), TSQUERY)
    return column.op("@@")(query), func.ts_rank(column, query)


def _any_of(terms: Sequence[str]) -> str:
    escaped = (term.replace("\\", "\\\\").replace("'", "''") for term in terms)
    return " | ".join(f"'{term}'" for term in escaped)
