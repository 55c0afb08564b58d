"""Store promoted snippets where they go: as memories, or as lines of the tenant's business context."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.conversation.scratchpad.snippet import Snippet
from shared.conversation.sessions.session import Session
from shared.dreams.promotion.promotion import PROMOTED_CATEGORY, Promotion, PromotionTrigger, SnippetOutcome
from shared.foundation.config import Settings
from shared.foundation.origin import Origin, Trust
from shared.foundation.sensitive_topics import is_sensitive
from shared.infra.transaction import Transaction
from shared.jobs import dream_schedule
from shared.memory.business_context import write as business_write
from shared.memory.longterm import tombstones
from shared.memory.longterm.labels import PERMISSION, PROMOTION, requires_permission
from shared.memory.longterm.memory import Memory, MemoryDraft, SavedDraft, Source
from shared.memory.longterm.save_scope import save_scope
from shared.memory.preferences import write as preference_write
from shared.memory.preferences.preference import PreferenceBasis
from shared.memory.preferences.write import LearntPreference
from shared.records.transaction import RecordTransaction

_PROMOTED = "promoted"


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one snippet, and the id of the memory or line that has its text."""

    outcome: SnippetOutcome
    memory_id: str | None = None
    line_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredSnippets:
    """What became of snippets, by their ids, and the memories that were made or changed for it.

    With the memories come new preferences, and the index jobs of these.
    """

    by_id: Mapping[str, Stored] = field(default_factory=dict)
    memories: Sequence[Memory] = ()


async def save_memories(
    tx: RecordTransaction,
    settings: Settings,
    session: Session,
    promotion: Promotion,
    snippets: Sequence[Snippet],
) -> StoredSnippets:
    """Save each text as a memory of the session's scope, with a preference that says the same beside it.

    A memory that says the same already is reinforced.

    A text that was deleted before is left out, unless a caller asks for it now. One that may not lead an
    agent becomes a memory without the category of preferences, and no preference.
    """
    deleted_texts: set[str] = set()
    is_asked_for = promotion.trigger is PromotionTrigger.EXPLICIT
    if not is_asked_for:
        contents = [snippet.content for snippet in snippets]
        deleted_texts = await tombstones.find_deleted(tx, session.scope, contents)
    allowed = [snippet for snippet in snippets if snippet.content not in deleted_texts]
    drafts = [
        SavedDraft(_draft(session, promotion, snippet), Origin.derived([snippet.origin.trust]))
        for snippet in allowed
    ]
    saved = await save_scope(tx, session.scope, promotion.actor, drafts, can_enrich=False)
    await dream_schedule.schedule_dream(tx, settings, session.scope)
    by_id = {snippet.id: Stored(SnippetOutcome.DELETED_BEFORE) for snippet in snippets}
    by_id |= {snippet.id: _of_memory(saved.by_position[n]) for n, snippet in enumerate(allowed)}
    promoted = {
        saved.by_position[position].id: saved.by_position[position]
        for position, snippet in enumerate(allowed)
        if may_lead(promotion, snippet)
    }
    learnt = [_preference(memory) for memory in promoted.values()]
    await preference_write.add_learnt(tx, session.scope, learnt, is_asked_for=is_asked_for)
    return StoredSnippets(by_id, list(saved.changed.values()))


def may_lead(promotion: Promotion, snippet: Snippet) -> bool:
    """Tell whether a snippet may become what agents are led by: text of outside only if a caller asks."""
    return snippet.origin.trust > Trust.OUTSIDE or promotion.trigger is PromotionTrigger.EXPLICIT


def _preference(memory: Memory) -> LearntPreference:
    """Return the preference beside a promoted memory. It has a slot of its own, so none overrules another."""
    key = f"{_PROMOTED}/{memory.id}"
    must_ask = requires_permission(memory.metadata)
    basis, origin = PreferenceBasis.PROMOTION, Origin.derived([memory.origin.trust])
    return LearntPreference(key, key, memory.content, memory.id, basis, must_ask, origin)


def _of_memory(memory: Memory) -> Stored:
    is_new = memory.reinforcement_count == 1
    outcome = SnippetOutcome.PROMOTED if is_new else SnippetOutcome.REINFORCED
    return Stored(outcome, memory_id=memory.id)


def _draft(session: Session, promotion: Promotion, snippet: Snippet) -> MemoryDraft:
    metadata = {"source": PROMOTION, "promotion_id": promotion.id, "snippet_id": snippet.id}
    permission = {PERMISSION: "true"} if is_sensitive(snippet.content) else {}
    return MemoryDraft(
        content=snippet.content,
        category=PROMOTED_CATEGORY if may_lead(promotion, snippet) else None,
        tags=(_PROMOTED,),
        metadata=metadata | permission,
        source=Source(session_id=session.id),
        enrich=False,
    )


async def add_lines(
    tx: Transaction, session: Session, snippets: Sequence[Snippet], reasons: Mapping[str, str]
) -> StoredSnippets:
    """Add each text as a line of the tenant's business context. `reasons` are by the ids of the snippets."""
    by_id: dict[str, Stored] = {}
    for snippet in snippets:
        line = await business_write.add_line(
            tx,
            snippet.content,
            Origin.derived([snippet.origin.trust]),
            agent_id=session.agent_id,
            user_id=session.user_id,
            session_id=session.id,
            snippet_id=snippet.id,
            reason=reasons[snippet.id],
        )
        if line is None:
            by_id[snippet.id] = Stored(SnippetOutcome.NO_ROOM)
        else:
            outcome = SnippetOutcome.REINFORCED if line.is_repeated else SnippetOutcome.PROMOTED
            by_id[snippet.id] = Stored(outcome, line_id=line.id)
    return StoredSnippets(by_id)
