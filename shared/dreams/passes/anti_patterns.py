"""Anti-patterns: what went wrong once, written as `Don't X for/because Y — instead Z`.

A bare "don't" doesn't say what to do instead, so code requires the full form. The check is strict because
a memory with this tag always has a place among the recalled ones.
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
    """An anti-pattern that a model derived from a correction.

    `session_ids` are the sessions of the correction, as far as the model named them.
    """

    content: str
    category: str
    tags: tuple[str, ...]
    session_ids: tuple[str, ...]

    @property
    def draft(self) -> MemoryDraft:
        """The memory to save."""
        return MemoryDraft(content=self.content, category=self.category, tags=self.tags, enrich=False)


def parse(reply: str) -> list[AntiPattern]:
    """Parse the items of a reply, whether they are well formed or not.

    Raises errors.InvalidModelReply if the reply has no list of items.
    """
    items = model_output.parse_listed_objects(reply, "toSave", "antiPatterns", "anti_patterns")
    return [_parse_item(item) for item in items]


def _parse_item(item: model_output.JsonObject) -> AntiPattern:
    content = item.get("content")
    category = item.get("category") or item.get("domain")
    sessions = item.get("sessionIds") or item.get("session_ids") or item.get("sourceSessions")
    return AntiPattern(
        content=content.replace("**", "").strip() if isinstance(content, str) else "",
        category=labels.category_below(ANTI_PATTERNS, category, f"{ANTI_PATTERNS}/general"),
        tags=labels.sanitize_tags(to_list(item.get("tags")), ANTI_PATTERN_TAG),
        session_ids=tuple(session_id for session_id in to_list(sessions) if isinstance(session_id, str)),
    )


def check_new(
    proposed: Iterable[AntiPattern], existing: Sequence[Memory]
) -> tuple[list[AntiPattern], list[Rejection]]:
    """Return the anti-patterns to save and the rejections of the others.

    An anti-pattern is rejected if it is badly formed, or nearly the same as an existing memory or as an
    item before it.
    """
    accepted: list[AntiPattern] = []
    rejections: list[Rejection] = []
    existing_words = [similarity.words_of(memory.content) for memory in existing]
    for index, anti_pattern in enumerate(proposed):
        item = item_reference("anti-pattern", (), index)
        words = similarity.words_of(anti_pattern.content)
        if not is_well_formed(anti_pattern.content):
            detail = "must read: Don't X for/because Y \u2014 instead Z"
            rejections.append(Rejection(RejectionCode.MALFORMED, item, detail))
        elif any(similarity.words_are_similar(words, other) for other in existing_words):
            rejections.append(Rejection(RejectionCode.DUPLICATE, item, "is known already"))
        else:
            accepted.append(anti_pattern)
            existing_words.append(words)
    return accepted, rejections
