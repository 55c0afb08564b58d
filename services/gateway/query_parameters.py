"""Refuse query parameters that a route does not declare.

Otherwise a misspelt filter would match everything.
"""

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute

from shared.foundation import errors


def refuse_unknown(request: Request) -> None:
    """Raise errors.Invalid naming the first parameter of the query that the route does not declare."""
    if not request.query_params:
        return
    declared = _declared_names(request.scope["route"])
    unknown = next((name for name in request.query_params if name not in declared), None)
    if unknown is not None:
        raise errors.Invalid(unknown or "query", f"is no query parameter of this route; {_list(declared)}")


def _declared_names(route: APIRoute) -> frozenset[str]:
    """Return the query parameters of a route and of all its dependencies."""
    parameters = get_flat_params(route.dependant)
    return frozenset(field.alias for field in parameters if isinstance(field.field_info, Query))


def _list(declared: frozenset[str]) -> str:
    return f"it has {', '.join(sorted(declared))}" if declared else "it has none"
