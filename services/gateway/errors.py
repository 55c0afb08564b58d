"""Errors to answers: one table, RFC 9457 problem JSON, and never a stack trace."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway.responses import JsonResponse
from shared.foundation import errors
from shared.infra.telemetry.logs import error_location

log = structlog.get_logger()
_UNREAD = errors.Violation("body", "must be JSON in UTF-8, of ordinary depth and numbers")

STATUS: dict[type[errors.LociError], HTTPStatus] = {
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.Busy: HTTPStatus.CONFLICT,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.LimitReached: HTTPStatus.CONFLICT,
    # Nothing will ever change it: the request itself is unfit.
    errors.Unsupported: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.InvalidModelReply: HTTPStatus.BAD_GATEWAY,
    errors.Misconfigured: HTTPStatus.INTERNAL_SERVER_ERROR,
}


def install(app: FastAPI) -> None:
    """Answer every error of ours, of the framework, and any other, as a problem."""
    app.add_exception_handler(errors.LociError, _ours)
    app.add_exception_handler(RequestValidationError, _unfit)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(_UnexpectedErrorMiddleware)


def status_of(error: errors.LociError) -> HTTPStatus:
    """Return the status of the nearest class that the table names."""
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def problem(status: HTTPStatus, detail: str, violations: Any = (), headers: Any = None) -> JsonResponse:
    """Return a problem answer."""
    return JsonResponse(body(status, detail, violations), status, headers, "application/problem+json")


def body(status: HTTPStatus, detail: str, violations: Any = ()) -> dict[str, Any]:
    """Return a problem as JSON, also where it stands for one item of a batch."""
    return {
        "type": "about:blank",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
        "errors": [{"field": one.field, "rule": one.rule} for one in violations],
    }


def of_error(error: errors.LociError) -> dict[str, Any]:
    """Return one of our errors as a problem body."""
    return body(status_of(error), str(error), getattr(error, "violations", ()))


async def _ours(request: Request, error: Exception) -> JsonResponse:
    del request
    if not isinstance(error, errors.LociError):
        raise error
    status = status_of(error)
    return problem(status, str(error), getattr(error, "violations", ()), _headers(error, status))


def _headers(error: errors.LociError, status: HTTPStatus) -> Mapping[str, str]:
    if status is HTTPStatus.UNAUTHORIZED:
        return {"www-authenticate": "Bearer"}
    if isinstance(error, (errors.Busy, errors.Unavailable)):
        return {"retry-after": str(max(1, round(error.retry_after or 1)))}
    return {}


async def _unfit(request: Request, error: Exception) -> JsonResponse:
    del request
    if not isinstance(error, RequestValidationError):
        raise error
    found = [_violation(one) for one in error.errors()]
    detail = "; ".join(f"{one.field}: {one.rule}" for one in found)
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, found)


def _violation(found: Mapping[str, Any]) -> errors.Violation:
    if found["type"] == "json_invalid":  # its place is where in the text the reader gave up
        return _UNREAD
    field = ".".join(str(part) for part in found["loc"][1:]) or str(found["loc"][0])
    return errors.Violation(field, found["msg"].removeprefix("Value error, "))


async def _http(request: Request, error: Exception) -> JsonResponse:
    del request
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == HTTPStatus.BAD_REQUEST:  # the framework's word for a body that nobody can read
        detail = f"{_UNREAD.field}: {_UNREAD.rule}"
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, [_UNREAD])
    return problem(HTTPStatus(error.status_code), str(error.detail), headers=error.headers)


class _UnexpectedErrorMiddleware:
    """Answer what nobody foresaw, and log where it happened: never its message, which may quote a memory.

    A middleware, because the framework's own handler answers and then raises again, which
    closes the connection on the client.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception as error:
            log.error("unexpected_error", error=type(error).__name__, where=error_location(error))  # noqa: TRY400
            if begun or scope["type"] != "http":
                raise
            told = problem(HTTPStatus.INTERNAL_SERVER_ERROR, "an unforeseen error; it has been logged")
            await told(scope, receive, send)
