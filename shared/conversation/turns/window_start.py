"""Move the start of what contexts replay, in steps.

A provider's prompt cache serves the part of a prompt with which an earlier prompt began. If the oldest
turn were left out at each turn, no context would begin as the one before. So the start stays until the
window is full and then moves by many turns at once. It is stored with the session, whose lock every
writer of turns holds: all gateways see the same start. It counts the turns that there are, not numbers.

With a language model, a full window makes a summary due, and the start moves in the transaction that stores
it. If that takes until `window_max_turns` stand in the window, it moves without. The window of an idle
session empties: when it does, a summary of all its turns becomes due.
"""

from collections.abc import Sequence

from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session, SessionKind
from shared.conversation.turns import queries
from shared.conversation.turns.turn import Turn
from shared.foundation.config import Settings
from shared.infra import language_model
from shared.infra.transaction import Transaction
from shared.jobs import summary_jobs


async def move(
    tx: Transaction, settings: Settings, session: Session, new_turns: Sequence[Turn], *, is_activity: bool
) -> None:
    """Move the window's start of a locked session to which turns were added, if they fill its window.

    After a session was idle for so long that its window counts as empty, the window begins with them. With
    `is_activity`, somebody will look whether the session becomes idle again.
    """
    start = new_turns[0].seq if session.window_expired else session.window_start
    size, step = settings.context_window_turns, settings.context_window_step
    is_summary_due = session.window_expired and session.turn_count > 0
    if new_turns[-1].seq - start + 1 >= size:  # else there cannot be so many turns
        seqs = await queries.list_seqs(tx, session, start)
        before = len(seqs) - len(new_turns)
        is_summary_due |= steps_due(len(seqs), size, step) > steps_due(before, size, step)
        start = next_start(seqs, _max_standing(settings), step) or start
    if start != session.window_start:
        await session_queries.set_window_start(tx, session, start)
    if not language_model.is_configured(settings):
        return
    if is_summary_due:
        await summary_jobs.schedule_summary(tx, session.id)
    # Patrols and subagents rarely go on after that.
    if is_activity and session.kind is SessionKind.SESSION:
        delay = settings.window_ttl + 1
        await summary_jobs.schedule_window_expiry(tx, session.id, delay)


async def due_start(tx: Transaction, settings: Settings, session: Session) -> int:
    """Return where the window of a locked session is to start, as soon as a summary has the turns before."""
    if session.window_expired:
        return session.last_seq + 1
    seqs = await queries.list_seqs(tx, session, session.window_start)
    size, step = settings.context_window_turns, settings.context_window_step
    return next_start(seqs, size, step) or session.window_start


def steps_due(count: int, size: int, step: int) -> int:
    """Return by how many steps the start of a window moves in which `count` turns stand."""
    return max(0, (count - size) // step + 1)


def next_start(seqs: Sequence[int], size: int, step: int) -> int | None:
    """Return where the window starts once `size` turns or more stand in it; None while there are fewer.

    `seqs` are the numbers of the turns from its start on, in order. Fewer than `size` remain, and at least
    `size - step`. `step` must be less than `size`.
    """
    steps = steps_due(len(seqs), size, step)
    return seqs[steps * step] if steps else None


def _max_standing(settings: Settings) -> int:
    """Return how many turns never stand in the window: it moves before, with or without a summary."""
    size = settings.context_window_turns
    return max(size, settings.window_max_turns) if language_model.is_configured(settings) else size


def max_replayed(settings: Settings, session: Session) -> int:
    """Return how many turns can stand in the window at most."""
    standing = min(session.turn_count, session.last_seq - session.window_start + 1)
    return max(0, min(_max_standing(settings) - 1, standing))


def replayed_from(session: Session) -> int:
    """Return the number from which on contexts replay turns; of an idle session that of its next turn."""
    return session.last_seq + 1 if session.window_expired else session.window_start


def within(session: Session, turns: Sequence[Turn]) -> list[Turn]:
    """Return those of these turns that stand in the window."""
    return [turn for turn in turns if turn.seq >= session.window_start]
