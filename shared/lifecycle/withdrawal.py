"""What follows when a caller withdraws turns, by editing or deleting them: what was derived from them goes.

`_CONSEQUENCES` lists what is collected for it, beside the rows that say by themselves that they name
withdrawn turns (`Subject.WITHDRAWN_TURN` in the tables): the marks of passes and of recalled memories, the
summary of the session, corrections and evaluations, evidence of preferences, what dream runs repeat, and
stored responses. A summary is made anew from the turns that are left.

A turn was withdrawn, and not a fact: nothing gets a tombstone, and what has other sources keeps those. What
a model call has cost stays booked.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.conversation.summary.summary import summary_id_of
from shared.conversation.turns import log_queries
from shared.conversation.turns.turn import record_id_of
from shared.conversation.turns.turn_range import ranges_of
from shared.foundation.content import Subject
from shared.foundation.stages import RecordKind
from shared.infra.transaction import Transaction
from shared.jobs import summary_jobs
from shared.lifecycle import closed_facts, deletion, removal
from shared.lifecycle.deletion import Deletion
from shared.memory.longterm import replaced, save, sources
from shared.memory.longterm.memory import Memory
from shared.memory.playbooks import queries as playbook_queries
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction
from shared.search.index import embedding_cache


@dataclass(slots=True)
class Withdrawal:
    """Turns of a locked session that are withdrawn, what is deleted with them, and what is changed.

    `actor` is the id of the caller's key.
    """

    session: Session
    seqs: Sequence[int]
    actor: str
    rows: Deletion
    changed_memories: list[Memory] = field(default_factory=list)

    @property
    def turn_keys(self) -> list[tuple[str, int]]:
        """The turns as (session id, seq)."""
        return [(self.session.id, seq) for seq in self.seqs]

    @property
    def record_ids(self) -> list[str]:
        """The record ids of the turns."""
        return [record_id_of(self.session.id, seq) for seq in self.seqs]


async def collect(tx: Transaction, session: Session, seqs: Sequence[int], actor: str) -> Withdrawal:
    """Lock what was derived from turns of a locked session, and return what is to be deleted with them."""
    withdrawal = Withdrawal(session, seqs, actor, Deletion(session.tenant))
    for consequence in _CONSEQUENCES:
        await consequence(tx, withdrawal)
    return withdrawal


async def carry_out(tx: RecordTransaction, resources: Resources, withdrawal: Withdrawal) -> None:
    """Delete what was collected, and note the change of the log."""
    session, rows = withdrawal.session, withdrawal.rows
    counts = await deletion.delete(tx, resources, rows)
    await session_queries.note_log_change(tx, session.id, more_turns=-counts["turn.seq"])
    await session_queries.renew_expiry(tx, session)
    if counts["session_summary.last_seq"]:
        await _make_summary_anew(tx, session)
    await save.index(tx, withdrawal.changed_memories)


async def _make_summary_anew(tx: Transaction, session: Session) -> None:
    """Erase the stored responses that show a deleted summary, and make the next one due."""
    summary_id = summary_id_of(session.id)
    await idempotency_queries.erase_responses(tx, [summary_id])
    await summary_jobs.schedule_summary(tx, session.id)


def add_turns(withdrawal: Withdrawal) -> None:
    """Add the turns themselves, if they are deleted and not edited."""
    withdrawal.rows.subjects[Subject.TURN] = withdrawal.record_ids
    withdrawal.rows.add_items(removal.points_of(RecordKind.TURN), withdrawal.record_ids)


async def _forget_what_names_them(tx: Transaction, withdrawal: Withdrawal) -> None:
    """Delete or clear the rows that name the turns."""
    del tx
    withdrawal.rows.subjects[Subject.WITHDRAWN_TURN] = withdrawal.record_ids


async def _forget_playbooks(tx: Transaction, withdrawal: Withdrawal) -> None:
    """Delete the playbooks of flows that had the turns; those about which a turn decided wait again."""
    rows = withdrawal.rows
    ranges = ranges_of(withdrawal.turn_keys)
    if ranges:
        gone = await playbook_queries.lock_from_turns(tx, ranges)
        await deletion.add_playbooks(tx, rows, gone)
        waiting = await playbook_queries.reopen_decided_by(tx, withdrawal.session.id, withdrawal.seqs)
        rows.add_items(removal.points_of(RecordKind.PLAYBOOK), waiting)


async def _forget_memories(tx: Transaction, withdrawal: Withdrawal) -> None:
    """Delete the memories that come from the turns alone; the others lose these sources.

    What a deleted memory had replaced is valid again, and so is what the graph said because of it.
    """
    actor = withdrawal.actor
    closed = await replaced.lock(tx, withdrawal.turn_keys)
    withdrawn = await sources.withdraw(tx, actor, withdrawal.turn_keys)
    await deletion.add_memories(tx, withdrawal.rows, [memory.id for memory in withdrawn.gone])
    reopened = await replaced.reopen(tx, actor, closed, withdrawn.gone)
    withdrawal.changed_memories += [*withdrawn.kept, *reopened]
    for memory in reopened:
        await closed_facts.restore(tx, memory.scope, [memory.id])


async def _forget_graph(tx: Transaction, withdrawal: Withdrawal) -> None:
    """Delete what of the graph was extracted from the turns alone."""
    await deletion.add_derived(tx, withdrawal.rows, turn_keys=withdrawal.turn_keys)


async def _forget_embeddings(tx: Transaction, withdrawal: Withdrawal) -> None:
    """Delete the cached embeddings of the texts."""
    if await embedding_cache.has_any(tx):
        texts = await log_queries.list_embedding_texts(tx, withdrawal.turn_keys)
        withdrawal.rows.embedding_texts += texts


async def _empty_window(tx: Transaction, withdrawal: Withdrawal) -> None:
    """Delete the cached window, whose turns are of an earlier revision of the log."""
    del tx
    withdrawal.rows.add_items(removal.WINDOW, [withdrawal.session.id])


_CONSEQUENCES: tuple[Callable[[Transaction, Withdrawal], Awaitable[None]], ...] = (
    _forget_what_names_them,
    _forget_playbooks,
    _forget_memories,
    _forget_graph,
    _forget_embeddings,
    _empty_window,
)
