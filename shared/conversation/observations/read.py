"""Read the observations of a session."""

from datetime import datetime

from shared.conversation.observations.observation import Observation, ObservationKind
from shared.conversation.observations.record_type import OBSERVATION
from shared.conversation.observations.table import observation
from shared.conversation.sessions.open import get_session
from shared.foundation.scope import Caller
from shared.platform.resources import Resources


async def list_observations(
    resources: Resources,
    caller: Caller,
    session_id: str,
    kind: ObservationKind | None,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[Observation]:
    """Return observations of a session, newest first; raise errors.NotFound for an unknown session.

    `after` is the (created_at, id) of the last observation of the previous page.
    """
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id)
        conditions = [observation.c.session_id == session.id]
        if kind is not None:
            conditions.append(observation.c.kind == kind)
        return await OBSERVATION.read_page(tx, limit, after, *conditions, newest_first=True)
