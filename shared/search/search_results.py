"""The result of a search, the same for every kind of record."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SearchResults(Generic[Result]):
    """Results, best first, with the search stages that ran and the parts that were unavailable."""

    results: list[Result] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
