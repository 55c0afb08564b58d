"""Refuse query parameters that a route does not declare, and those that are repeated but are no lists.

Otherwise a misspelt filter would match everything, and of two values one would be taken without a word.
"""

from fastapi import Request
from fastapi._compat import field_annotation_is_sequence
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute

from shared.foundation import errors


def check(request: Request) -> None:
    """Raise errors.Invalid naming the first parameter of the query that the route does not take so."""
    if not request.query_params:
        return
    declared = _declared(request.scope["route"])
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in declared:
            raise errors.Invalid(name or "query", f"is no query parameter of this route; {_list(declared)}")
        if name in seen and not declared[name]:
            raise errors.Invalid(name, "must be given once")
        seen.add(name)


def _declared(route: APIRoute) -> dict[str, bool]:
    """Return the query parameters of a route and of all its dependencies, and whether each is a list."""
    return {
        field.alias: field_annotation_is_sequence(field.field_info.annotation)
        for field in get_flat_params(route.dependant)
        if isinstance(field.field_info, Query)
    }


def _list(declared: dict[str, bool]) -> str:
    return f"it has {', '.join(sorted(declared))}" if declared else "it has none"
