"""Leave out of a context what was deleted, or expired, after it was read.

A context is gathered without a transaction, and recorded in one: its lines are stored with the turn and
with the response. In that transaction the records that the lines repeat are locked against deletion. One
that is gone is left out. One that is deleted later finds the stored lines, because a deletion waits for
the lock and looks for copies afterwards.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from shared.context import skills
from shared.context.types import WORKING_BLOCKS, Block, BlockKind, ContextInputs, Line
from shared.conversation.sessions import namespace_queries
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn, turn_key_of
from shared.foundation import errors
from shared.infra import redis as redis_client
from shared.infra.transaction import Transaction
from shared.memory.graph import triple_queries
from shared.memory.longterm import queries as memory_queries
from shared.memory.skills import queries as skill_queries
from shared.memory.working import keys
from shared.memory.working import queries as working_queries
from shared.memory.working.working_memory import WorkingMemory
from shared.platform.resources import Resources


async def lock_sessions(tx: Transaction, session: Session, inputs: ContextInputs) -> None:
    """Lock the session of a context and those whose turns it shows, in the order of all session locks."""
    if shown_ids := _shown_turn_ids(inputs):
        session_ids = {session.id, *(turn_key_of(record_id)[0] for record_id in shown_ids)}
        await session_queries.lock(tx, sorted(session_ids))


async def leave_out_deleted(tx: Transaction, session: Session, inputs: ContextInputs) -> None:
    """Remove deleted memories and turns from the inputs, and lock the others until the transaction ends.

    The sessions must be locked already.
    """
    memory_ids = {result.memory.id for result in inputs.results}
    memory_ids |= {
        line.id for turn in inputs.turns for line in turn.recalled_lines if line.skill_part is None
    }
    existing_ids = await memory_queries.lock_existing(tx, sorted(memory_ids))
    inputs.recalled = [result for result in inputs.recalled if result.memory.id in existing_ids]
    inputs.episodes = [result for result in inputs.episodes if result.memory.id in existing_ids]
    inputs.turns = [_without_deleted_lines(turn, existing_ids) for turn in inputs.turns]
    if shown_ids := _shown_turn_ids(inputs):
        versions = await turn_queries.versions(tx, sorted(shown_ids), turn_queries.visible(session.scope))
        lines = {line for block in _past_turns(inputs) for line in block.lines}
        # An edited turn has another version: its old text may not be stored any more.
        deleted_ids = {line.record_id for line in lines if versions.get(line.record_id) != line.version}
        inputs.other_blocks = _without(inputs.other_blocks, {BlockKind.PAST_TURNS}, deleted_ids)


async def leave_out_deleted_skills(
    tx: Transaction, inputs: ContextInputs, *, lock_replayed: bool, has_budget: bool
) -> None:
    """Remove skills that were deleted or changed from the inputs, and lock those that are new in this turn.

    With `lock_replayed`, those that older turns show are locked, too: the response is stored with them. Under
    a budget, what older turns show may give way, and is new then.
    """
    if not inputs.skills.entries:
        return
    new_ids = skills.possible_ids(inputs) if has_budget else {line.id for line in skills.new_lines(inputs)}
    replayed_ids = {line.id for turn in inputs.turns for line in turn.recalled_lines if line.skill_part}
    locked_ids = new_ids | replayed_ids if lock_replayed else new_ids
    others = replayed_ids - locked_ids
    versions = await skill_queries.lock_existing(tx, locked_ids, others)
    inputs.skills = skills.without_changed(inputs.skills, versions, new_ids | replayed_ids)


async def leave_out_deleted_entries(
    resources: Resources, tx: Transaction, session: Session, inputs: ContextInputs
) -> datetime | None:
    """Remove working-memory entries that are gone from the inputs of a context whose response is stored.

    The names of the others stay locked until the transaction ends: who deletes one erases the response.
    Return when the first of them expires, or None without any.
    """
    shown_keys = {line.record_id for block in inputs.other_blocks for line in _working_lines(block)}
    bases = {key: keys.parse_view(key).base for key in shown_keys}
    namespaces = sorted({keys.namespace_of(base) for base in bases.values()})
    if not namespaces:
        return None
    await namespace_queries.lock_entry_names(tx, namespaces, shared=True)
    expiries = await _expiries_of_entries(resources, session.tenant, namespaces)
    deleted_keys = {key for key, base in bases.items() if base not in expiries}
    inputs.other_blocks = _without(inputs.other_blocks, WORKING_BLOCKS, deleted_keys)
    return min((expiries[base] for base in bases.values() if base in expiries), default=None)


async def leave_out_deleted_triples(tx: Transaction, inputs: ContextInputs) -> None:
    """Remove deleted triples from the inputs of a context whose response is stored, and lock the others."""
    shown = {line.record_id for block in inputs.other_blocks for line in _graph_lines(block)}
    if shown:
        existing = await triple_queries.lock_existing(tx, sorted(shown))
        inputs.other_blocks = _without(inputs.other_blocks, {BlockKind.GRAPH}, shown - existing)


def _graph_lines(block: Block) -> Sequence[Line]:
    return block.lines if block.kind is BlockKind.GRAPH else ()


def _working_lines(block: Block) -> Sequence[Line]:
    return block.lines if block.kind in WORKING_BLOCKS else ()


async def _expiries_of_entries(
    resources: Resources, tenant: str, namespaces: Sequence[str]
) -> dict[str, datetime]:
    """Return when each entry of some namespaces expires, by normalised key; none if Redis is unavailable."""
    working_memory = WorkingMemory.from_resources(resources, tenant)
    try:
        with redis_client.failures_as_unavailable():
            listings = await working_queries.list_many_prefixes(working_memory, *namespaces)
    except errors.Unavailable:
        return {}
    infos = [info for group in listings.values() for info in group]
    return {keys.normalize_key(info.key): info.expires_at for info in infos}


def _shown_turn_ids(inputs: ContextInputs) -> set[str]:
    return {line.record_id for block in _past_turns(inputs) for line in block.lines}


def _past_turns(inputs: ContextInputs) -> list[Block]:
    return [block for block in inputs.other_blocks if block.kind is BlockKind.PAST_TURNS]


def _without_deleted_lines(turn: Turn, existing_ids: set[str]) -> Turn:
    lines = [line for line in turn.recalled_lines if line.skill_part or line.id in existing_ids]
    return (
        turn if len(lines) == len(turn.recalled_lines) else turn.model_copy(update={"recalled_lines": lines})
    )


def _without(blocks: list[Block], kinds: Collection[BlockKind], deleted_ids: Collection[str]) -> list[Block]:
    """Return blocks without the lines of deleted records in those of some kinds, and without empty blocks."""
    kept_blocks = [
        replace(block, lines=tuple(line for line in block.lines if line.record_id not in deleted_ids))
        if block.kind in kinds
        else block
        for block in blocks
    ]
    return [block for block in kept_blocks if block.lines]
