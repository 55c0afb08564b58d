"""Hold what may not be stored yet: a proposal with its evidence waits for a judge or a caller.

What is proposed again while it waits adds its evidence and nothing else. The evidence is locked against its
deletion first: a proposal repeats its text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

from shared.conversation.sessions import queries as session_queries
from shared.conversation.turns import log_queries
from shared.foundation.config import Settings
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.fingerprint import normalize
from shared.memory.proposals import queries
from shared.memory.proposals.proposal import ProposalDraft

_STORED_APART = frozenset({"id", "content", "fingerprint", "search_terms"})


class Held(NamedTuple):
    """The ids of the proposals that wait now, and how many drafts were left out.

    `over_limit` are those for which the scope has no room, `without_evidence` those of which something was
    deleted or edited meanwhile.
    """

    proposal_ids: list[str]
    over_limit: int
    without_evidence: int


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What exists of what drafts rest on, locked against deletion."""

    turn_keys: frozenset[tuple[str, int]]
    user_ids: Mapping[str, str | None]
    edited_at: Mapping[str, datetime | None]

    def has_all(self, draft: ProposalDraft) -> bool:
        """Tell whether what a draft names is there, as it was read, and that it rests on something."""
        has_some = bool(draft.evidence_turns or draft.evidence_memory_ids)
        return (
            has_some
            and self.turn_keys.issuperset(draft.evidence_turns)
            and draft.memory_ids <= self.edited_at.keys()
            and all(self.edited_at[memory_id] == at for memory_id, at in draft.edited_at.items())
        )


async def hold(tx: Transaction, settings: Settings, scope: Scope, drafts: Sequence[ProposalDraft]) -> Held:
    """Let drafts of one scope wait for a decision, at most `proposal_max_per_scope` of the scope at once."""
    if not drafts:
        return Held([], 0, 0)
    evidence = await _lock_evidence(tx, drafts)
    await queries.lock_scope(tx, scope)
    await queries.expire(tx, scope)
    room = settings.proposal_max_per_scope - await queries.count_held(tx, scope)
    sound = [draft for draft in drafts if evidence.has_all(draft)]
    proposal_ids: list[str] = []
    for draft in sound:
        columns = _columns(draft)
        key = (draft.kind.value, columns["fingerprint"], columns["closes"])
        proposal_id = await queries.find_held(tx, scope, *key)
        if proposal_id is None and room > 0:
            age = timedelta(days=settings.proposal_days)
            proposal_id = await queries.insert_held(tx, scope, columns, age)
            room -= 1
        if proposal_id is not None:
            await _add_evidence(tx, proposal_id, draft, evidence)
            proposal_ids.append(proposal_id)
    return Held(proposal_ids, len(sound) - len(proposal_ids), len(drafts) - len(sound))


async def is_full(tx: Transaction, settings: Settings, scope: Scope) -> bool:
    """Tell whether a scope has no room for another proposal: then its turns are not mined."""
    return await queries.count_held(tx, scope) >= settings.proposal_max_per_scope


async def _lock_evidence(tx: Transaction, drafts: Sequence[ProposalDraft]) -> _Evidence:
    turn_keys = {turn_key for draft in drafts for turn_key in draft.evidence_turns}
    memory_ids = sorted({memory_id for draft in drafts for memory_id in draft.memory_ids})
    session_ids = sorted({session_id for session_id, _ in turn_keys})
    await session_queries.lock_existing(tx, session_ids)
    user_ids = await session_queries.read_users(tx, session_ids)
    voices = await log_queries.list_voices(tx, list(turn_keys))
    await memory_queries.lock_existing(tx, memory_ids)
    memories = await memory_queries.read(tx, memory_ids)
    return _Evidence(frozenset(voices), user_ids, {memory.id: memory.updated_at for memory in memories})


def _columns(draft: ProposalDraft) -> dict[str, Any]:
    return {
        "kind": draft.kind,
        "text": draft.text,
        "fingerprint": sha256(normalize(draft.text).encode()).digest(),
        "row": {name: value for name, value in draft.row.items() if name not in _STORED_APART},
        "closes": draft.closes or "",
        "replaces": list(draft.replaces),
        "signs": list(draft.signs),
    }


async def _add_evidence(tx: Transaction, proposal_id: str, draft: ProposalDraft, evidence: _Evidence) -> None:
    users = {evidence.user_ids.get(session_id) for session_id, _ in draft.evidence_turns}
    await queries.add_evidence(
        tx,
        proposal_id,
        draft.evidence_turns,
        draft.evidence_memory_ids,
        sorted(user_id for user_id in users if user_id is not None),
        {memory_id: evidence.edited_at[memory_id] for memory_id in draft.memory_ids},
    )
