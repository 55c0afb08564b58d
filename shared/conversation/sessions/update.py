"""Change what a caller may change of a session: its metadata, its name and its time to live."""

from collections.abc import Mapping
from typing import Any

from shared.conversation.sessions import queries
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session, SessionKind
from shared.foundation import errors, validation
from shared.foundation.scope import Caller
from shared.platform.resources import Resources


async def update_session(
    resources: Resources, caller: Caller, session_id: str, changes: Mapping[str, Any]
) -> Session:
    """Apply changes to fields of a session, which restart its time to live, and return it.

    `metadata` is replaced as a whole; None takes away `name` and `ttl_seconds`. Raises errors.NotFound for an
    unknown session, errors.Invalid for a bad value, and errors.Conflict for the name of a patrol or subagent.
    """
    settings = resources.settings
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, settings, caller, session_id, lock=True)
        await queries.update_fields(tx, session, _checked(session, changes))
        return await get_session(tx, settings, caller, session_id)


def _checked(session: Session, changes: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(changes)
    if "metadata" in values:
        if values["metadata"] is None:
            raise errors.Invalid("metadata", "must not be null; {} is none")
        values["metadata"] = validation.check_metadata(values["metadata"])
    if "name" in values:
        if values["name"] is not None:
            validation.check_identifier(values["name"], "name")
        _require_free_name(session, values["name"])
    return values


def _require_free_name(session: Session, name: str | None) -> None:
    """Raise errors.Conflict if the session's working memory has its name, and the name would change."""
    if session.kind is not SessionKind.SESSION and name != session.name:
        raise errors.Conflict(
            f"the name of a {session.kind} can't be changed: its working memory is '{session.namespace}'"
        )
