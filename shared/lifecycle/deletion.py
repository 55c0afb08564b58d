"""Delete sessions, memories and playbooks with every copy of their text: the part that all deletions share.

Rows go in the caller's transaction, by the register of where content lies. In the same transaction it is
written down what Redis and Qdrant still hold, and claims on the records' jobs become invalid, so that a
worker that is thinking about one of them records nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from shared.conversation.observations import queries as observation_queries
from shared.conversation.scratchpad import queries as scratchpad_queries
from shared.conversation.sessions.queries import LockedSession
from shared.conversation.sessions.session import SessionKind
from shared.conversation.turns import queries as turn_queries
from shared.foundation.content import Subject
from shared.foundation.stages import Pipeline, RecordKind
from shared.infra.transaction import Transaction
from shared.jobs import queries as job_queries
from shared.jobs.removals import Family
from shared.lifecycle import register, removal
from shared.lifecycle.removal import Removal
from shared.memory.graph import source_queries as graph_source_queries
from shared.memory.graph import triple_queries
from shared.memory.longterm import maintenance_queries
from shared.memory.playbooks import queries as playbook_queries
from shared.memory.preferences import queries as preference_queries
from shared.memory.skills import index_document as skill_document
from shared.memory.skills.skill import SearchableSkill
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction
from shared.search.index import embedding_cache
from shared.search.text import indexed_text


@dataclass(slots=True)
class Deletion:
    """What is deleted: the subjects, what the other databases hold of them, and the texts to forget."""

    tenant: str
    subjects: dict[Subject, list[str]] = field(default_factory=dict)
    items: dict[Family, set[str]] = field(default_factory=dict)
    embedding_texts: list[str] = field(default_factory=list)

    def add_items(self, family: Family, names: Sequence[str]) -> None:
        """Note what a store holds."""
        self.items.setdefault(family, set()).update(names)


async def add_sessions(
    tx: Transaction, deletion: Deletion, sessions: Sequence[LockedSession], *, shared_namespaces: bool = False
) -> None:
    """Add locked sessions with their turns, observations and playbooks.

    A session's own namespace of working memory goes with it. With `shared_namespaces`, those of patrols
    and subagents are cleared too, which else end by their own time to live.
    """
    ids = [session.id for session in sessions]
    await maintenance_queries.note_deleted_sources(tx, ids)
    turn_ids = await turn_queries.list_record_ids(tx, ids)
    observation_ids = await observation_queries.list_ids(tx, ids)
    if await embedding_cache.has_any(tx):
        turns = await turn_queries.list_indexed(tx, ids)
        observation_texts = await observation_queries.embedding_texts(tx, ids)
        deletion.embedding_texts += [*(text for _, text in turns.values()), *observation_texts.values()]
    await add_playbooks(tx, deletion, await playbook_queries.lock_of(tx, session_ids=ids))
    deletion.subjects.setdefault(Subject.SESSION, []).extend(ids)
    deletion.add_items(removal.points_of(RecordKind.TURN), turn_ids)
    deletion.add_items(removal.points_of(RecordKind.OBSERVATION), observation_ids)
    deletion.add_items(removal.WINDOW, ids)
    deletion.add_items(removal.SCRATCHPAD, ids)
    deletion.add_items(removal.STATE, ids)
    own = [s.namespace for s in sessions if shared_namespaces or s.kind == SessionKind.SESSION]
    deletion.add_items(removal.WORKING, own)


async def add_playbooks(tx: Transaction, deletion: Deletion, ids: Sequence[str]) -> None:
    """Add locked playbooks, with the snippets that repeat them."""
    if not ids:
        return
    deletion.embedding_texts += await playbook_queries.list_embedding_texts(tx, ids)
    deletion.subjects.setdefault(Subject.PLAYBOOK, []).extend(ids)
    deletion.add_items(removal.points_of(RecordKind.PLAYBOOK), ids)
    repeating = await scratchpad_queries.list_sessions_repeating(tx, ids)
    deletion.add_items(removal.SCRATCHPAD, repeating)
    await idempotency_queries.erase_responses(tx, repeating)


async def add_memories(tx: Transaction, deletion: Deletion, ids: Sequence[str]) -> None:
    """Add locked memories, and the preferences that were learnt with them."""
    if not ids:
        return
    if await embedding_cache.has_any(tx):
        deletion.embedding_texts += await maintenance_queries.list_embedding_texts(tx, ids)
    deletion.subjects.setdefault(Subject.MEMORY, []).extend(ids)
    deletion.add_items(removal.points_of(RecordKind.MEMORY), ids)
    shown_in = await turn_queries.list_sessions_showing(tx, ids)
    deletion.add_items(removal.WINDOW, shown_in)
    await add_derived(tx, deletion, memory_ids=ids)
    learnt = await preference_queries.lock_of(tx, Subject.MEMORY, ids)
    await add_preferences(tx, deletion, learnt)


async def add_preferences(
    tx: Transaction, deletion: Deletion, descriptions: Mapping[str, str | None]
) -> None:
    """Add locked preferences, given as their descriptions by id."""
    if not descriptions:
        return
    described = {id_: text for id_, text in descriptions.items() if text is not None}
    if await embedding_cache.has_any(tx):
        deletion.embedding_texts += map(indexed_text.embedding_text, described.values())
    deletion.subjects.setdefault(Subject.PREFERENCE, []).extend(descriptions)
    deletion.add_items(removal.points_of(RecordKind.PREFERENCE), list(described))


async def add_skills(tx: Transaction, deletion: Deletion, skills: Sequence[SearchableSkill]) -> None:
    """Add locked skills. Turns repeat those that contexts have shown with them."""
    if not skills:
        return
    ids = [skill.id for skill in skills]
    if await embedding_cache.has_any(tx):
        deletion.embedding_texts += map(skill_document.embedding_text, skills)
    deletion.subjects.setdefault(Subject.SKILL, []).extend(ids)
    deletion.add_items(removal.points_of(RecordKind.SKILL), ids)
    shown_in = await turn_queries.list_sessions_showing(tx, ids)
    deletion.add_items(removal.WINDOW, shown_in)


async def add_derived(
    tx: Transaction,
    deletion: Deletion,
    *,
    turn_keys: Sequence[tuple[str, int]] = (),
    memory_ids: Sequence[str] = (),
) -> None:
    """Add the entities and triples that dreams have extracted from these turns or memories alone."""
    entity_ids, triple_ids = await graph_source_queries.lock_derived_from(
        tx, turn_keys=turn_keys, memory_ids=memory_ids
    )
    await add_entities(tx, deletion, entity_ids)
    add_triples(deletion, triple_ids)


async def add_entities(tx: Transaction, deletion: Deletion, ids: Sequence[str]) -> None:
    """Add locked entities of the graph, and lock and add their triples."""
    if ids:
        deletion.subjects.setdefault(Subject.ENTITY, []).extend(ids)
        add_triples(deletion, await triple_queries.lock_of_entities(tx, ids))


def add_triples(deletion: Deletion, ids: Sequence[str]) -> None:
    """Add locked triples of the graph."""
    if not ids:
        return
    known = deletion.subjects.setdefault(Subject.TRIPLE, [])
    known.extend(sorted(set(ids).difference(known)))


async def delete(tx: RecordTransaction, resources: Resources, deletion: Deletion) -> Counter[str]:
    """Delete the rows, and after the commit what the other databases hold of them; return as `carry_out`."""
    if not any((*deletion.subjects.values(), *deletion.items.values())):
        return Counter()
    counts, rest = await carry_out(tx, deletion)
    tx.after_commit(partial(removal.work_off, resources, rest))
    return counts


async def carry_out(
    tx: Transaction, deletion: Deletion, operation_id: str | None = None
) -> tuple[Counter[str], Removal]:
    """Delete the rows; return how many by the register's columns, and what is to be removed afterwards."""
    counts = await register.forget(tx, deletion.subjects)
    if sessions := deletion.subjects.get(Subject.SESSION):
        for pipeline in (Pipeline.IDLE, Pipeline.SUMMARY):
            await job_queries.cancel(tx, RecordKind.SESSION, sessions, pipeline)
    rest = await removal.begin(tx, deletion.items, operation_id)
    # After the claims of workers became invalid: one that had a valid claim may have saved a vector.
    await embedding_cache.delete_cached(tx, deletion.embedding_texts)
    return counts, rest
