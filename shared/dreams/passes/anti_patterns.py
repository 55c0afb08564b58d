"""Anti-patterns: what went wrong once, as `Don't X for/because Y — instead Z`.

The form is what makes them useful: a bare "don't" leaves the next agent without a way on. It is held
by code, since an entry with this tag is never crowded out of a recall.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shared.dreams.verification import labels, similarity
from shared.dreams.verification.anti_pattern_form import is_well_formed
from shared.dreams.verification.plan import to_list
from shared.dreams.verification.rejection import Rejection, RejectionCode, item_reference
from shared.foundation import model_output
from shared.foundation.categories import ANTI_PATTERN_TAG, ANTI_PATTERNS
from shared.memory.longterm.memory import Memory, MemoryDraft


@dataclass(frozen=True, slots=True)
class AntiPattern:
    """What a model made of a correction. `session_ids` tell where, as far as the model said."""

    content: str
    category: str
    tags: tuple[str, ...]
    session_ids: tuple[str, ...]

    @property
    def draft(self) -> MemoryDraft:
        """The entry it becomes."""
        return MemoryDraft(content=self.content, category=self.category, tags=self.tags, enrich=False)


def parse(reply: str) -> list[AntiPattern]:
    """Read the items of a reply, well formed or not; errors.BadReply when it holds no list of them."""
    return [
        _read(item)
        for item in model_output.parse_listed_objects(reply, "toSave", "antiPatterns", "anti_patterns")
    ]


def _read(item: model_output.JsonObject) -> AntiPattern:
    content = item.get("content")
    category = item.get("category") or item.get("domain")
    sessions = item.get("sessionIds") or item.get("session_ids") or item.get("sourceSessions")
    return AntiPattern(
        content=content.replace("**", "").strip() if isinstance(content, str) else "",
        category=labels.category_below(ANTI_PATTERNS, category, f"{ANTI_PATTERNS}/general"),
        tags=labels.sanitize_tags(to_list(item.get("tags")), ANTI_PATTERN_TAG),
        session_ids=tuple(one for one in to_list(sessions) if isinstance(one, str)),
    )


def checked(
    found: Iterable[AntiPattern], existing: Sequence[Memory]
) -> tuple[list[AntiPattern], list[Rejection]]:
    """Part what may be saved from what may not: badly formed, or said by an entry or an item before."""
    accepted: list[AntiPattern] = []
    rejections: list[Rejection] = []
    known = [similarity.words_of(entry.content) for entry in existing]
    for index, one in enumerate(found):
        said = similarity.words_of(one.content)
        if not is_well_formed(one.content):
            detail = "must read: Don't X for/because Y \u2014 instead Z"
            rejections.append(
                Rejection(RejectionCode.MALFORMED, item_reference("anti-pattern", (), index), detail)
            )
        elif any(similarity.words_are_similar(said, other) for other in known):
            detail = "is known already"
            rejections.append(
                Rejection(RejectionCode.DUPLICATE, item_reference("anti-pattern", (), index), detail)
            )
        else:
            accepted.append(one)
            known.append(said)
    return accepted, rejections
