"""Store a summary and move the window behind it, in one transaction under the lock of the session."""

from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.conversation.summary import queries
from shared.conversation.summary.due import DueSummary
from shared.conversation.summary.summary import SessionSummary
from shared.infra.transaction import Transaction


async def is_current(tx: Transaction, session: Session, due: DueSummary) -> bool:
    """Tell whether what was to be summarised is still as it was read, apart from turns that came later.

    A turn that was edited or deleted meanwhile may be in the new summary, so that must not be stored.
    """
    if session.log_revision != due.session.log_revision:
        return False
    return await queries.find(tx, session.id) == due.standing


async def record(tx: Transaction, session: Session, due: DueSummary, summary: SessionSummary) -> Session:
    """Store a summary of a locked session, and return the session with the start that its window has now.

    If the summary has only a part of what was due, the window starts behind that part: every turn is in the
    summary, or it is replayed.
    """
    await queries.save(tx, summary, due.read_at)
    is_complete = not await queries.has_turns(tx, session, summary.last_seq, due.before)
    start = max(session.window_start, due.before if is_complete else summary.last_seq + 1)
    if start != session.window_start:
        await session_queries.set_window_start(tx, session, start)
    return session.model_copy(update={"window_start": start})
