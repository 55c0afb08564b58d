"""Leave out of a context what was deleted after it was read.

A context is gathered without a transaction, and recorded in one: its lines are stored with the turn and
with the response. In that transaction the records that the lines repeat are locked against deletion. One
that is gone is left out. One that is deleted later finds the stored lines, because a deletion waits for
the lock and looks for copies afterwards.
"""

from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.context.types import Block, BlockKind, ContextInputs
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.session import Session
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn, turn_key_of
from shared.memory.longterm import queries as memory_queries


async def lock_sessions(connection: AsyncConnection, session: Session, inputs: ContextInputs) -> None:
    """Lock the session of a context and those whose turns it shows, in the order of all session locks."""
    if shown_ids := _shown_turn_ids(inputs):
        session_ids = {session.id, *(turn_key_of(record_id)[0] for record_id in shown_ids)}
        await session_queries.lock(connection, session.tenant, sorted(session_ids))


async def leave_out_deleted(connection: AsyncConnection, session: Session, inputs: ContextInputs) -> None:
    """Remove deleted memories and turns from the inputs, and lock the others until the transaction ends.

    The sessions must be locked already.
    """
    memory_ids = {result.memory.id for result in inputs.results}
    memory_ids |= {line.id for turn in inputs.turns for line in turn.recalled_lines}
    existing_ids = await memory_queries.lock_existing(connection, session.tenant, sorted(memory_ids))
    inputs.recalled = [result for result in inputs.recalled if result.memory.id in existing_ids]
    inputs.episodes = [result for result in inputs.episodes if result.memory.id in existing_ids]
    inputs.turns = [_without_deleted_lines(turn, existing_ids) for turn in inputs.turns]
    if shown_ids := _shown_turn_ids(inputs):
        existing_turns = await turn_queries.versions(connection, session.tenant, sorted(shown_ids))
        inputs.other_blocks = _without_deleted_turns(inputs.other_blocks, set(existing_turns))


def _shown_turn_ids(inputs: ContextInputs) -> set[str]:
    past_turns = [block for block in inputs.other_blocks if block.kind is BlockKind.PAST_TURNS]
    return {line.record_id for block in past_turns for line in block.lines}


def _without_deleted_lines(turn: Turn, existing_ids: set[str]) -> Turn:
    lines = [line for line in turn.recalled_lines if line.id in existing_ids]
    return (
        turn if len(lines) == len(turn.recalled_lines) else turn.model_copy(update={"recalled_lines": lines})
    )


def _without_deleted_turns(blocks: list[Block], existing_ids: set[str]) -> list[Block]:
    kept_blocks = [
        replace(block, lines=tuple(line for line in block.lines if line.record_id in existing_ids))
        if block.kind is BlockKind.PAST_TURNS
        else block
        for block in blocks
    ]
    return [block for block in kept_blocks if block.lines]
