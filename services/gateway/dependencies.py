"""The dependencies of routes: the resources, the caller, the scope and the idempotency key.

All are async, even those that await nothing: FastAPI runs the others in a thread, which costs a query.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Header, Query, Request, Security
from fastapi.dependencies.models import Dependant
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from shared.foundation import errors
from shared.foundation.scope import Caller, Right, Scope
from shared.platform.auth import api_keys, rights
from shared.platform.auth.rights import Action, Area
from shared.platform.idempotency.idempotent import IdempotencyKey
from shared.platform.resources import Resources

_bearer = HTTPBearer(auto_error=False, description="A key from `loci keys create`.")
KEY = Security(_bearer)
"""Declares in the OpenAPI document that a route needs a key."""
MAX_IDEMPOTENCY_KEY_LENGTH = 255
IN_BATCH = "loci.caller"
"""The key of the ASGI scope under which an operation of a batch has the caller of the batch."""


async def app_resources(request: Request) -> Resources:
    """Return the resources that this process opened at its start."""
    resources: Resources = request.app.state.resources
    return resources


ResourcesDep = Annotated[Resources, Depends(app_resources)]


async def authenticate(request: Request) -> None:
    """Note the caller that the request's key stands for, for `caller_of`, or raise errors.Unauthenticated.

    It is the first that is checked of every request with a key, and reads its header alone.
    """
    caller: Caller | None = request.scope.get(IN_BATCH)
    request.state.caller = caller or await look_up_caller(request)


async def look_up_caller(request: Request) -> Caller:
    """Return the caller as its key is now. Raise errors.Unauthenticated for a missing or revoked key."""
    credentials: HTTPAuthorizationCredentials | None = await _bearer(request)
    if credentials is None:
        raise errors.Unauthenticated("send a key as 'Authorization: Bearer <key>'")
    resources: Resources = request.app.state.resources
    return await api_keys.authenticate(resources.postgres, credentials.credentials)


async def caller_of(request: Request) -> Caller:
    """Return the caller of an authenticated request."""
    caller: Caller = request.state.caller
    return caller


RightCheck = Callable[[Request], Awaitable[Caller]]
_right_checks: set[RightCheck] = set()


def right_checks(dependant: Dependant) -> list[RightCheck]:
    """Return what checks the rights of a caller among the dependencies of a route."""
    nested = [check for dependency in dependant.dependencies for check in right_checks(dependency)]
    return [check for check in _right_checks if check is dependant.call] + nested


def _caller_with(right: Right, *, only_working_memory: bool = False) -> RightCheck:
    async def require_right(request: Request) -> Caller:
        caller = await caller_of(request)
        caller.require_right(right)
        if not only_working_memory:
            rights.require_more_than_working_memory(caller)
        return caller

    _right_checks.add(require_right)
    return require_right


ReadCaller = Annotated[Caller, Depends(_caller_with("read"))]
WriteCaller = Annotated[Caller, Depends(_caller_with("write"))]
# A write that answers with what the key has not named: it needs the right to read that too.
MAY_READ = Depends(_caller_with("read"))
AdminCaller = Annotated[Caller, Depends(_caller_with("admin"))]
# Of routes that serve nothing but working memory. Every other route refuses a key bound to a namespace.
WorkingReadCaller = Annotated[Caller, Depends(_caller_with("read", only_working_memory=True))]
WorkingWriteCaller = Annotated[Caller, Depends(_caller_with("write", only_working_memory=True))]

AgentId = Annotated[str | None, Query(description="The agent; `default` if not given.", examples=["support"])]
UserId = Annotated[str | None, Query(description="The user, if any.", examples=["ada"])]


async def _memory_scope(caller: ReadCaller, agent_id: AgentId = None, user_id: UserId = None) -> Scope:
    """Return the scope that the query names. Raise errors.Forbidden if the key is bound elsewhere."""
    return rights.scope(caller, Area.MEMORIES, Action.READ, agent_id, user_id)


ReadScope = Annotated[Scope, Depends(_memory_scope)]


_KeyHeader = Annotated[
    str | None,
    Header(
        description="Identifies this request: a repetition within 24 hours gets the same response, or 409"
        " once something in it was deleted or has expired."
    ),
]


async def _idempotency_key(request: Request, idempotency_key: _KeyHeader = None) -> IdempotencyKey | None:
    if idempotency_key is None:
        return None
    payload = await request.body() + b"\x00" + request.url.query.encode()
    return await _key(request, idempotency_key, hashlib.sha256(payload).digest())


async def _stream_key(request: Request, idempotency_key: _KeyHeader = None) -> IdempotencyKey | None:
    """Return the key of a request whose body is not read as a whole: whoever reads it sets the digest."""
    return None if idempotency_key is None else await _key(request, idempotency_key, b"")


async def _key(request: Request, idempotency_key: str, digest: bytes) -> IdempotencyKey:
    if not 1 <= len(idempotency_key) <= MAX_IDEMPOTENCY_KEY_LENGTH or not idempotency_key.isprintable():
        raise errors.Invalid(
            "Idempotency-Key", f"must be 1 to {MAX_IDEMPOTENCY_KEY_LENGTH} printable characters"
        )
    caller = await caller_of(request)
    # Keys bound to different users may choose the same value; neither may get the other's response. As JSON,
    # no id, whatever its characters, reads like two bindings.
    bindings = [json.dumps(caller.bindings, sort_keys=True)] if caller.bindings else []
    route = " ".join([request.method, request.url.path, *bindings])
    return IdempotencyKey(route, idempotency_key, digest)


IdempotencyKeyDep = Annotated[IdempotencyKey | None, Depends(_idempotency_key)]
StreamKeyDep = Annotated[IdempotencyKey | None, Depends(_stream_key)]
Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the page before.")]
