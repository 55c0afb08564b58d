"""The headers that choose an agent, a user and a session for tools, as dependencies of routes."""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Header, Request

from services.gateway.dependencies import caller_of
from services.gateway.tools import invocation
from services.gateway.tools.invocation import AGENT_HEADER, SESSION_HEADER, USER_HEADER, Identity
from shared.foundation import errors
from shared.platform.idempotency.idempotent import IdempotencyKey

CHOOSING = {name.lower(): name for name in (AGENT_HEADER, USER_HEADER, SESSION_HEADER)}
"""The headers by their names in lower case."""


async def _identify(
    request: Request,
    loci_agent: Annotated[str | None, Header(alias=AGENT_HEADER, description="The agent to act for.")] = None,
    loci_user: Annotated[str | None, Header(alias=USER_HEADER, description="The user to act for.")] = None,
    loci_session: Annotated[
        str | None,
        Header(alias=SESSION_HEADER, description="The session to work in, with its agent and user."),
    ] = None,
) -> None:
    """Note the identity that the headers choose, and its caller for all that follows.

    The parameters are there for the OpenAPI document. The headers are read as bytes: the framework takes
    them for Latin-1, and ids may have any letters.
    """
    del loci_agent, loci_user, loci_session
    identity = invocation.identify(await caller_of(request), _sent_once(request))
    request.state.identity, request.state.caller = identity, identity.caller


def _sent_once(request: Request) -> dict[str, bytes]:
    """Return the headers of a request. Raise errors.Invalid for one that chooses twice."""
    headers: dict[str, bytes] = {}
    for raw_name, value in request.headers.raw:
        name = raw_name.decode("latin-1")
        if name in headers and name in CHOOSING:
            raise errors.Invalid(CHOOSING[name], "must be sent once")
        headers[name] = value
    return headers


IDENTIFIED = Depends(_identify)
"""To stand before every other dependency of a route: idempotency keys belong to the narrowed caller."""


async def _identity(request: Request) -> Identity:
    identity: Identity = request.state.identity
    return identity


IdentityDep = Annotated[Identity, Depends(_identity)]


def session_key(key: IdempotencyKey | None, identity: Identity) -> IdempotencyKey | None:
    """Return the idempotency key of a request in its session: in another session it is another request."""
    if key is None or identity.session_id is None:
        return key
    return replace(key, route=f"{key.route} {identity.session_id}")
