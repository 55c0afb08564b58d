"""What a route may ask for: the resources, who is calling, and the request's own key."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Header, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from shared.foundation import errors
from shared.foundation.scope import Caller, Right, Scope
from shared.platform.auth import api_keys
from shared.platform.idempotency.queries import IdempotencyKey
from shared.platform.resources import Resources

_bearer = HTTPBearer(auto_error=False, description="A key from `loci keys create`.")
MAX_KEY = 255


def resources(request: Request) -> Resources:
    """Return what the process opened at its start."""
    opened: Resources = request.app.state.resources
    return opened


ResourcesDep = Annotated[Resources, Depends(resources)]


async def _caller(
    resources: ResourcesDep, credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
) -> Caller:
    if credentials is None:
        raise errors.Unauthenticated("send a key as 'Authorization: Bearer <key>'")
    return await api_keys.authenticate(resources.postgres, credentials.credentials)


def _with(right: Right) -> Callable[..., Awaitable[Caller]]:
    async def allowed(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
        caller.require_right(right)
        return caller

    return allowed


ReadCaller = Annotated[Caller, Depends(_with("read"))]
WriteCaller = Annotated[Caller, Depends(_with("write"))]
AdminCaller = Annotated[Caller, Depends(_with("admin"))]

AgentId = Annotated[str | None, Query(description="The agent; `default` if not given.", examples=["support"])]
UserId = Annotated[str | None, Query(description="The user, if any.", examples=["ada"])]


def reading_scope(caller: ReadCaller, agent_id: AgentId = None, user_id: UserId = None) -> Scope:
    """Return the scope that query parameters name."""
    return caller.scope(agent_id, user_id)


ReadScope = Annotated[Scope, Depends(reading_scope)]


async def _request_key(
    request: Request,
    caller: Annotated[Caller, Depends(_caller)],
    idempotency_key: Annotated[
        str | None,
        Header(description="Names this request: sent again within 24 h, it is answered the same."),
    ] = None,
) -> IdempotencyKey | None:
    if idempotency_key is None:
        return None
    if not 1 <= len(idempotency_key) <= MAX_KEY or not idempotency_key.isprintable():
        raise errors.Invalid("Idempotency-Key", f"must be 1 to {MAX_KEY} printable characters")
    # Two keys bound to different users may choose the same word: neither may be answered the other's.
    bound = [f"{field}={value}" for field, value in caller.bindings.items()]
    route = " ".join([request.method, request.url.path, *bound])
    told = await request.body() + b"\x00" + request.url.query.encode()
    return IdempotencyKey(route, idempotency_key, hashlib.sha256(told).digest())


IdempotencyKeyDep = Annotated[IdempotencyKey | None, Depends(_request_key)]
Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the page before.")]
