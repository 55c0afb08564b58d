"""Tell what of a session is to be summarised: all turns before the start that its window is to have."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.conversation.scratchpad.read import read_insights
from shared.conversation.scratchpad.snippet import MANY_SNIPPETS
from shared.conversation.sessions.session import Session
from shared.conversation.summary import queries
from shared.conversation.summary.summary import SessionSummary
from shared.conversation.turns import window_start
from shared.foundation.config import Settings
from shared.infra.transaction import Transaction


@dataclass(frozen=True, slots=True)
class DueSummary:
    """A session, its summary so far, and the number `before` which all turns are to be in the next one.

    `insights` are what the agent has noted from the summary so far until `read_at`.
    """

    session: Session
    standing: SessionSummary | None
    before: int
    insights: Sequence[str]
    read_at: datetime

    @property
    def after(self) -> int:
        """The number of the last turn that the summary so far has; 0 without one."""
        return 0 if self.standing is None else self.standing.last_seq

    @property
    def text_so_far(self) -> str | None:
        """The text of the summary so far, or None without one."""
        return None if self.standing is None else self.standing.content


async def find_due(tx: Transaction, settings: Settings, session: Session) -> DueSummary | None:
    """Return what of a locked session is to be summarised, or None if nothing is.

    These are the turns that stood before the window when it moved without a summary, too.
    """
    before = await window_start.due_start(tx, settings, session)
    standing = await queries.find(tx, session.id)
    last_read_at, read_at = await queries.find_times(tx, session)
    insights = await read_insights(tx, session, last_read_at)
    due = DueSummary(session, standing, before, tuple(insights), read_at)
    if standing is not None and len(insights) >= MANY_SNIPPETS:
        return due
    return due if await queries.has_turns(tx, session, due.after, before) else None
