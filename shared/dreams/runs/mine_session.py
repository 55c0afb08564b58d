"""Mine the turns of a session now, when a caller asks for it."""

from typing import Any

from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import SessionKind
from shared.dreams.runs import queries, start
from shared.dreams.runs.dream_run import Run
from shared.foundation import errors
from shared.foundation.config import Settings
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import DreamPass
from shared.infra.transaction import Transaction
from shared.jobs import dream_schedule, mining_schedule, removals
from shared.platform.agents import profile
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources

_AT_ONCE = 0.0


async def mine_session(
    resources: Resources, caller: Caller, session_id: str, key: IdempotencyKey | None = None
) -> dict[str, Any]:
    """Start a run that mines all unmined turns of a session's scope, and return it as JSON.

    While another run over the scope has not ended, that one is returned, and the turns that it leaves
    unmined are mined right after it. Raises errors.NotFound for a session that the caller may not see,
    errors.Forbidden for one whose scope it may not change, and errors.Conflict if its turns are not mined:
    those of patrols and subagents, and where the agent's profile says so.
    """
    async with resources.transaction(caller.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            return dict(request.stored)
        session = await get_session(tx, resources.settings, caller, session_id)
        await removals.delay_erasures(tx, session.scope)
        # The session is read again: it may have been erased meanwhile.
        scope = await _mineable_scope(tx, resources.settings, caller, session_id)
        run = await _start_or_join(tx, resources.settings, scope)
        response = run.model_dump(mode="json")
        await request.store(response, user_id=scope.user_id)
        start.wake_first_pass(tx, response)
    return response


async def _mineable_scope(tx: Transaction, settings: Settings, caller: Caller, session_id: str) -> Scope:
    session = await get_session(tx, settings, caller, session_id)
    owner, missing = Owner(session.agent_id, session.user_id), f"session not found: {session_id}"
    rights.require(caller, Area.DREAMS, Action.WRITE, owner, missing)
    if session.kind is not SessionKind.SESSION:
        raise errors.Conflict(f"the turns of a {session.kind} are not mined")
    reason = await profile.reason_not_to_mine(tx, session.scope)
    if reason is not None:
        raise errors.Conflict(f"the turns of session '{session_id}' are not mined: {reason}")
    return session.scope


async def _start_or_join(tx: Transaction, settings: Settings, scope: Scope) -> Run:
    """Start a run over the scope, or return the running one after which the scope is due."""
    passes = (DreamPass.MINE_FACTS,)
    run = await start.start_run(tx, settings, scope, dream_schedule.MINING, passes)
    if run is not None:
        await mining_schedule.unschedule(tx, scope)
        return run
    await mining_schedule.schedule(tx, scope, _AT_ONCE)
    running = await queries.get_running(tx, scope)
    if running is None:  # it ended between these statements
        raise errors.Conflict("a dream run over this scope has ended just now: ask again")
    return _without_content(running)


def _without_content(run: Run) -> Run:
    """Leave out what a run has read and proposed: the response is stored, and would outlive deletions."""
    no_content: dict[str, Any] = {"inputs": {}, "proposed": None, "rejections": []}
    return run.model_copy(update={"passes": [pass_.model_copy(update=no_content) for pass_ in run.passes]})
