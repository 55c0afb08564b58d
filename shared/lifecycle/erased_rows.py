"""Delete every row of a user or an agent from Postgres, in the order in which all transactions lock.

What a dream pass of theirs would record now is dropped: its job is deleted first, so it finds no claim. No
run of theirs is started meanwhile.
"""

from collections import Counter
from dataclasses import dataclass

from shared.conversation.sessions import namespace_queries
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.queries import LockedSession
from shared.conversation.state import scratch
from shared.conversation.turns import queries as turn_queries
from shared.foundation.content import Subject
from shared.infra.transaction import Transaction
from shared.jobs import dream_schedule
from shared.lifecycle import deletion, register, removal
from shared.lifecycle.deletion import Deletion
from shared.lifecycle.removal import Removal
from shared.memory.graph import entity_queries, triple_queries
from shared.memory.longterm import maintenance_queries
from shared.memory.longterm.maintenance_queries import LockedMemory
from shared.memory.playbooks import queries as playbook_queries
from shared.memory.preferences import queries as preference_queries
from shared.memory.proposals import queries as proposal_queries
from shared.memory.skills import queries as skill_queries
from shared.platform.agents import queries as agent_queries
from shared.platform.idempotency import queries as idempotency_queries

_NAMES = {
    "memory_history.memory_id": "history",
    "turn.session_id": "turns",
    "observation.session_id": "observations",
    "scratchpad_snippet.session_id": "snippets",
    "business_context_part.session_id": "business_context_lines",
    "business_context_part.user_id": "business_context_lines",
    "business_context_part.agent_id": "business_context_lines",
    "feedback_signal.session_id": "feedback",
    "dream_run.id": "dream_runs",
    "idempotent_response.record_ids": "stored_responses",
    "idempotent_response.user_id": "stored_responses",
    # The amounts stay, because the money was spent. Only the user is removed from them.
    "charge.user_id": "anonymised_charges",
    "agent_text.agent_id": "texts",
    "agent_file.agent_id": "files",
    "preference.id": "preferences",
    "playbook.id": "playbooks",
    "skill.id": "skills",
    "skill_file.user_id": "skill_files",
    "skill_file.agent_id": "skill_files",
    "graph_entity.id": "entities",
    "graph_triple.id": "triples",
    "pinned_text.user_id": "pinned_texts",
    "pinned_text.agent_id": "pinned_texts",
}


@dataclass(frozen=True, slots=True)
class Owner:
    """A user, of all agents, or an agent, of all users."""

    subject: Subject
    id: str

    @property
    def column(self) -> dict[str, str]:
        """The column that names this owner in sessions and memories, with its value."""
        return {f"{self.subject}_id": self.id}

    @property
    def owners(self) -> dict[Subject, str]:
        """Nobody else: the digest of the receipt is the owner's own."""
        return {}

    async def count_rows(self, tx: Transaction) -> int:
        """Return the number of their memories and turns, which are most of the rows."""
        return await count_rows(tx, self)

    async def collect(self, tx: Transaction, limit: int | None = None) -> tuple[Deletion, Counter[str], bool]:
        """Lock rows and return their deletion, as the function of this name does."""
        return await collect(tx, self, limit)

    async def erase(self, tx: Transaction, rows: Deletion, erasure_id: str) -> tuple[Counter[str], Removal]:
        """Delete collected rows, as the function of this name does."""
        return await erase(tx, rows, self, erasure_id)


async def count_rows(tx: Transaction, owner: Owner) -> int:
    """Return the number of memories and turns of an owner, which are most of the rows."""
    memory_count = await maintenance_queries.count_of(tx, **owner.column)
    return memory_count + await turn_queries.count_of(tx, **owner.column)


async def collect(
    tx: Transaction, owner: Owner, limit: int | None = None
) -> tuple[Deletion, Counter[str], bool]:
    """Lock rows of an owner and return their deletion: of all, or of up to `limit` memories and sessions.

    Return also their numbers, and whether nothing else is left.
    """
    run_ids = await dream_schedule.cancel_runs(tx, **owner.column)
    sessions = await session_queries.lock_of(tx, **owner.column, limit=limit)
    # Charges are locked before memories, as everywhere.
    await register.lock(tx, "charge", {owner.subject: [owner.id]})
    memories = await _lock_memories(tx, owner, sessions, limit)
    is_complete = limit is None or (len(sessions) < limit and len(memories) < limit)
    rows = Deletion(tx.tenant, {Subject.DREAM_RUN: run_ids})
    if is_complete:
        playbook_ids = await playbook_queries.lock_of(
            tx, session_ids=[session.id for session in sessions], **owner.column
        )
        await deletion.add_playbooks(tx, rows, playbook_ids)
    await deletion.add_sessions(tx, rows, sessions, shared_namespaces=True)
    await deletion.add_memories(tx, rows, [memory.id for memory in memories])
    # One that rests on a deleted turn goes with it, uncounted: so they are counted before.
    rows.subjects[Subject.PROPOSAL] = await proposal_queries.lock_of(tx, **owner.column)
    from_sessions = await triple_queries.lock_of(tx, session_ids=[session.id for session in sessions])
    deletion.add_triples(rows, from_sessions)
    if is_complete:
        await _add_owner(tx, rows, owner)
    counts = Counter(
        proposals=len(rows.subjects[Subject.PROPOSAL]),
        memories=len(memories),
        archived=sum(memory.is_archived for memory in memories),
        sessions=len(sessions),
        points=sum(len(items) for family, items in rows.items.items() if family.store == removal.QDRANT),
    )
    return rows, counts, is_complete


async def erase(
    tx: Transaction, rows: Deletion, owner: Owner, erasure_id: str
) -> tuple[Counter[str], Removal]:
    """Delete collected rows; return their numbers by the names of the receipt, and what is left to remove."""
    counts, rest = await deletion.carry_out(tx, rows, erasure_id)
    await dream_schedule.cancel_scopes(tx, **owner.column)
    return receipt_counts(counts), rest


def receipt_counts(counts: Counter[str]) -> Counter[str]:
    """Return the numbers of the register under the names of the receipt."""
    named: Counter[str] = Counter()
    for column, count in counts.items():
        if column in _NAMES:
            named[_NAMES[column]] += count
    return named


async def _lock_memories(
    tx: Transaction, owner: Owner, sessions: list[LockedSession], limit: int | None
) -> list[LockedMemory]:
    """Lock the owner's memories.

    Locking may wait for an enrichment, which then has added memories; so this repeats until none are new.
    """
    session_ids = [session.id for session in sessions]
    count = -1
    while True:
        memories = await maintenance_queries.lock_of(tx, **owner.column, session_ids=session_ids, limit=limit)
        if len(memories) <= count or not memories:
            return memories
        count = len(memories)


async def _add_owner(tx: Transaction, rows: Deletion, owner: Owner) -> None:
    rows.subjects[owner.subject] = [owner.id]
    own = await preference_queries.lock_of(tx, owner.subject, [owner.id])
    await deletion.add_preferences(tx, rows, own)
    skills = await skill_queries.lock_of(tx, owner.subject, [owner.id])
    await deletion.add_skills(tx, rows, skills)
    entity_ids = await entity_queries.lock_of(tx, **owner.column)
    await deletion.add_entities(tx, rows, entity_ids)
    deletion.add_triples(rows, await triple_queries.lock_of(tx, **owner.column))
    owned = await namespace_queries.release_owned(tx, **owner.column)
    rows.add_items(removal.WORKING, owned)
    if owner.subject is Subject.USER:
        rows.add_items(removal.SCRATCH, [scratch.user_registry(owner.id)])
        return
    rows.add_items(removal.SCRATCH, [scratch.agent_registry(owner.id)])
    text_ids = await agent_queries.list_text_ids(tx, owner.id)
    await idempotency_queries.erase_responses(tx, text_ids)
