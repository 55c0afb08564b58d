"""One call of a tool: on whose behalf, and in which session.

The key of the request decides. Headers choose within its rights: `Loci-Agent` and `Loci-User` bind the key of
this request to an agent and a user too, so that a call may do what a key with these bindings may, and never
more. `Loci-Session` names a session that this key may see; its agent and user are those of the call.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from shared.conversation.sessions import read as session_read
from shared.conversation.sessions.session import Session
from shared.foundation import errors
from shared.foundation.origin import Channel
from shared.foundation.scope import Caller, Scope, check_id
from shared.memory.working import access
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.idempotency.idempotent import IdempotencyKey
from shared.platform.resources import Resources

AGENT_HEADER, USER_HEADER, SESSION_HEADER = "Loci-Agent", "Loci-User", "Loci-Session"


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller of a request, bound as its headers say, and the session that they name."""

    caller: Caller
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call of a tool. `caller` is bound to the agent and the user of the session, if there is one."""

    resources: Resources
    caller: Caller
    session: Session | None = None
    idempotency_key: IdempotencyKey | None = None

    def scope(self, area: Area, action: Action) -> Scope:
        """Return the scope that the call acts in. Raise errors.Forbidden as `rights.require_area` does."""
        return rights.scope(self.caller, area, action)

    @property
    def namespace(self) -> str | None:
        """The namespace in which relative keys of working memory are resolved, if any."""
        return access.bound_namespace(self.caller, None if self.session is None else self.session.namespace)

    @property
    def session_id(self) -> str:
        """The id of the session, of a tool that needs one."""
        if self.session is None:
            raise errors.Invalid(SESSION_HEADER, "must name the session that this tool works in")
        return self.session.id


def identify(caller: Caller, headers: Mapping[str, bytes]) -> Identity:
    """Return the identity that a request chooses by its headers, whose names are in lower case.

    Raise errors.Invalid for a header that is no id, and errors.Forbidden for an agent or a user that the key
    may not act for.
    """
    chosen = {name: _header(headers, name) for name in (AGENT_HEADER, USER_HEADER, SESSION_HEADER)}
    narrowed = rights.narrow(caller.via(Channel.TOOL), chosen[AGENT_HEADER], chosen[USER_HEADER])
    return Identity(narrowed, chosen[SESSION_HEADER])


def _header(headers: Mapping[str, bytes], name: str) -> str | None:
    """Return a header, or None if it is not sent. An empty one, a variable without value, is refused."""
    value = headers.get(name.lower())
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise errors.Invalid(name, "must be UTF-8") from None
    check_id(name, text)
    return text


async def begin(
    resources: Resources, identity: Identity, idempotency_key: IdempotencyKey | None = None
) -> Invocation:
    """Return the call of a request. Raise errors.NotFound for a session that the key may not see."""
    if identity.session_id is None:
        return Invocation(resources, identity.caller, None, idempotency_key)
    rights.require_more_than_working_memory(identity.caller)
    session = await session_read.read_session(resources, identity.caller, identity.session_id)
    caller = rights.narrow(identity.caller, session.agent_id, session.user_id)
    return Invocation(resources, caller, session, idempotency_key)
