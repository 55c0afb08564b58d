"""Turn errors into problem responses (RFC 9457). One table maps error classes to statuses."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway.api_model import MAX_VIOLATIONS
from services.gateway.responses import JsonResponse
from shared.foundation import errors
from shared.infra.telemetry.logs import error_location

log = structlog.get_logger()
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_UNREADABLE_BODY = errors.Violation("body", "must be JSON in UTF-8, of ordinary depth and numbers")

STATUS: dict[type[errors.LociError], HTTPStatus] = {
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.WrongMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    errors.Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.Busy: HTTPStatus.CONFLICT,
    errors.PreconditionFailed: HTTPStatus.PRECONDITION_FAILED,
    errors.PreconditionRequired: HTTPStatus.PRECONDITION_REQUIRED,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.LimitReached: HTTPStatus.CONFLICT,
    # Not a conflict: no change of state will ever make this request valid.
    errors.Unsupported: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.InvalidModelReply: HTTPStatus.BAD_GATEWAY,
    errors.Misconfigured: HTTPStatus.INTERNAL_SERVER_ERROR,
}


MAX_TEXT_CHARS = 2000
"""What an error repeats of a request, such as an id that does not exist, may be of any length."""


def install(app: FastAPI) -> None:
    """Answer Loci's errors, the framework's and unexpected ones with a problem response."""
    app.add_exception_handler(errors.LociError, _handle_loci_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    app.add_middleware(UnexpectedErrorMiddleware)


def status_of(error: errors.LociError) -> HTTPStatus:
    """Return the status of the nearest base class in the table."""
    return next(STATUS[base] for base in type(error).__mro__ if base in STATUS)


def problem_response(
    status: HTTPStatus, detail: str, violations: Any = (), headers: Any = None
) -> JsonResponse:
    """Return a problem as a response."""
    return JsonResponse(problem_body(status, detail, violations), status, headers, "application/problem+json")


def problem_body(status: HTTPStatus, detail: str, violations: Any = ()) -> dict[str, Any]:
    """Return a problem as JSON, its texts cut if they are long. In a batch it is the result of one item."""
    return {
        "type": "about:blank",
        "title": status.phrase,
        "status": int(status),
        "detail": shortened(detail),
        "errors": [
            {"field": shortened(violation.field), "rule": shortened(violation.rule)}
            for violation in violations
        ],
    }


def shortened(text: str) -> str:
    """Return the text of an error, cut if it is long."""
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]} …"


def problem_from_error(error: errors.LociError) -> dict[str, Any]:
    """Return one of Loci's errors as a problem body."""
    return problem_body(status_of(error), str(error), getattr(error, "violations", ()))


async def _handle_loci_error(request: Request, error: Exception) -> JsonResponse:
    if not isinstance(error, errors.LociError):
        raise error
    # For the batch that this request may be an operation of.
    request.state.is_still_running = isinstance(error, errors.StillRunning)
    status = status_of(error)
    return problem_response(status, str(error), getattr(error, "violations", ()), _headers(error, status))


def _headers(error: errors.LociError, status: HTTPStatus) -> Mapping[str, str]:
    if status is HTTPStatus.UNAUTHORIZED:
        return {"www-authenticate": "Bearer"}
    if isinstance(error, (errors.Busy, errors.Unavailable)):
        return {"retry-after": str(max(1, round(error.retry_after or 1)))}
    return {}


async def _handle_validation_error(request: Request, error: Exception) -> JsonResponse:
    del request
    if not isinstance(error, RequestValidationError):
        raise error
    violations = [_to_violation(details) for details in error.errors()[:MAX_VIOLATIONS]]
    detail = "; ".join(f"{violation.field}: {violation.rule}" for violation in violations)
    return problem_response(HTTPStatus.UNPROCESSABLE_ENTITY, detail, violations)


def _to_violation(details: Mapping[str, Any]) -> errors.Violation:
    if details["type"] == "json_invalid":  # its `loc` is an offset in the text and names no field
        return _UNREADABLE_BODY
    field = ".".join(str(part) for part in details["loc"][1:]) or str(details["loc"][0])
    return errors.Violation(field, details["msg"].removeprefix("Value error, "))


async def _handle_http_exception(request: Request, error: Exception) -> JsonResponse:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == HTTPStatus.BAD_REQUEST:  # the framework raises it for a body that it can't read
        detail = f"{_UNREADABLE_BODY.field}: {_UNREADABLE_BODY.rule}"
        return problem_response(HTTPStatus.UNPROCESSABLE_ENTITY, detail, [_UNREADABLE_BODY])
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(_allowed_methods(request))
        detail = f"{request.method} is no method of this path; it has {allowed}"
        return problem_response(HTTPStatus.METHOD_NOT_ALLOWED, detail, headers={"allow": allowed})
    return problem_response(HTTPStatus(error.status_code), str(error.detail), headers=error.headers)


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of all routes of a path. The framework names those of one route alone."""
    allowed = []
    for method in _METHODS:
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            allowed.append(method)
    return allowed


def log_unexpected(error: Exception) -> None:
    """Log the type and the location of an error that nobody foresaw. Its message may quote a memory."""
    log.error("unexpected_error", error=type(error).__name__, where=error_location(error))


class UnexpectedErrorMiddleware:
    """Answer an unexpected error with a 500, and log its type and location.

    The error's message is not logged, because it may quote a memory. This is a middleware because the
    framework's own handler raises again after its response, which closes the client's connection.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, and answer it if that fails."""
        has_started = False

        async def note_start(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, note_start)
        except Exception as error:
            log_unexpected(error)
            if has_started or scope["type"] != "http":
                raise
            response = problem_response(
                HTTPStatus.INTERNAL_SERVER_ERROR, "an unexpected error; it has been logged"
            )
            await response(scope, receive, send)
