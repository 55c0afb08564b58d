"""Skills as resources of MCP: `skill://<name>`, in Markdown, for hosts that let a user attach them.

They are those that the agent and the user of a request go by, as the tools show them. A key that may read
no skill is listed none. To read one is to use it, in the session if the request names one.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import mcp_types
from mcp.shared.exceptions import MCPError

from services.gateway import errors as gateway_errors
from services.gateway.tools import invocation
from services.gateway.tools.invocation import Identity, Invocation
from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.memory.skills import read
from shared.memory.skills.skill import check_name
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources

_SCHEME, _MIME_TYPE = "skill://", "text/markdown"
_PAGE = 100


async def list_skills(
    resources: Resources, identity: Identity, cursor: str | None
) -> mcp_types.ListResourcesResult:
    """Return a page of skills by their names, those after the name `cursor`."""
    after = "" if cursor is None else check_name(cursor, "cursor")
    try:
        _, scope = await _begin(resources, identity)
    except errors.Forbidden:
        return mcp_types.ListResourcesResult(resources=[])
    entries = sorted(await read.list_in_force(resources, scope), key=lambda entry: entry.name)
    rest = [entry for entry in entries if entry.name > after]
    shown = [
        mcp_types.Resource(
            uri=f"{_SCHEME}{entry.name}",
            name=entry.name,
            description=entry.summary,
            mime_type=_MIME_TYPE,
        )
        for entry in rest[:_PAGE]
    ]
    next_cursor = shown[-1].name if len(rest) > _PAGE else None
    return mcp_types.ListResourcesResult(resources=shown, next_cursor=next_cursor)


async def read_skill(resources: Resources, identity: Identity, uri: str) -> mcp_types.ReadResourceResult:
    """Return the content of a skill, and note that it is used, unless the key may only read.

    Raise errors.NotFound for what is none, and errors.Forbidden for a key that may read none.
    """
    if not uri.startswith(_SCHEME):
        raise errors.NotFound("no such resource: those of Loci are skill://<name>")
    name = check_name(uri.removeprefix(_SCHEME), "uri")
    call, scope = await _begin(resources, identity)
    session_id = None if call.session is None else call.session.id
    skill = await read.load(resources, call.caller, scope, name, session_id)
    content = mcp_types.TextResourceContents(uri=uri, mime_type=_MIME_TYPE, text=skill.content)
    return mcp_types.ReadResourceResult(contents=[content])


async def _begin(resources: Resources, identity: Identity) -> tuple[Invocation, Scope]:
    """Return the request in its session, and the scope whose skills it reads."""
    identity.caller.require_right(Action.READ.value)
    call = await invocation.begin(resources, identity)
    return call, call.scope(Area.MEMORIES, Action.READ)


@contextmanager
def errors_for_clients() -> Iterator[None]:
    """Raise the errors of a block as those of the protocol. An unexpected one is logged without its text."""
    try:
        yield
    except errors.Unavailable as error:
        raise MCPError(mcp_types.INTERNAL_ERROR, gateway_errors.shortened(str(error))) from None
    except errors.LociError as error:
        raise MCPError(mcp_types.INVALID_PARAMS, gateway_errors.shortened(str(error))) from None
    except Exception as error:  # noqa: BLE001  (the SDK would send its text)
        gateway_errors.log_unexpected(error)
        raise MCPError(mcp_types.INTERNAL_ERROR, "an unexpected error; it has been logged") from None
