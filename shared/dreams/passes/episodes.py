"""Episodes: stories with an outcome, from the conversation log, and how they go on.

Importance stays between 0.2 and 0.95: a model can't make an episode more certain than anything that
was told, and what is not worth 0.2 would not be worth writing down.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.dreams.verification import fidelity, labels
from shared.dreams.verification.fidelity import Fault
from shared.dreams.verification.plan import to_list, to_unit_interval
from shared.dreams.verification.rejection import Rejection, RejectionCode, item_reference
from shared.foundation import errors, model_output, validation
from shared.foundation.categories import EPISODES, is_below
from shared.memory.longterm.memory import MAX_CONTENT, Memory, MemoryDraft, Source

KINDS = ("conversation", "task", "decision", "discovery", "problem")
LEAST, USUAL, MOST = 0.2, 0.4, 0.95
_ID = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Episode:
    """Something that happened. `session_ids`: where it was told, as far as the model said."""

    content: str
    category: str
    tags: tuple[str, ...]
    importance: float
    session_ids: tuple[str, ...]

    @property
    def draft(self) -> MemoryDraft:
        """The entry it becomes."""
        source = Source(session_id=self.session_ids[0], seq=None) if self.session_ids else None
        return MemoryDraft(
            content=self.content,
            category=self.category,
            tags=self.tags,
            importance=self.importance,
            source=source,
            enrich=False,
        )


@dataclass(frozen=True, slots=True)
class EpisodeUpdate:
    """How an episode that is kept went on: its whole text anew."""

    id: str
    content: str
    importance: float
    session_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Episodes:
    """What a model made of a stretch of the log."""

    new: tuple[Episode, ...]
    continued: tuple[EpisodeUpdate, ...]


def parse(reply: str) -> Episodes:
    """Read `{toSave: […], toUpdate: […]}`; what has no usable content or id is left out.

    Raises errors.BadReply when the reply holds no such object.
    """
    told = model_output.parse_object(reply, "toSave", "toUpdate")
    new = (_episode(item) for item in _items(told, "toSave"))
    continued = (_continuation(item) for item in _items(told, "toUpdate"))
    return Episodes(tuple(filter(None, new)), tuple(filter(None, continued)))


def _items(told: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = told.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _episode(item: Mapping[str, Any]) -> Episode | None:
    content = _content(item)
    if content is None:
        return None
    kind = str(item.get("category") or "").strip().lower().rpartition("/")[2]
    return Episode(
        content=content,
        category=f"{EPISODES}/{kind if kind in KINDS else KINDS[0]}",
        tags=labels.sanitize_tags(to_list(item.get("tags")), EPISODES),
        importance=importance(item.get("importance")),
        session_ids=_sessions(item),
    )


def _continuation(item: Mapping[str, Any]) -> EpisodeUpdate | None:
    content, id_ = _content(item), str(item.get("id")).strip(" []").lower().removeprefix("id:")
    if content is None or _ID.fullmatch(id_) is None:
        return None
    return EpisodeUpdate(id_, content, importance(item.get("importance")), _sessions(item))


def _content(item: Mapping[str, Any]) -> str | None:
    content = item.get("content")
    try:
        return (
            validation.check_text(content.strip(), "content", MAX_CONTENT)
            if isinstance(content, str)
            else None
        )
    except errors.Invalid:
        return None


def importance(offered: Any) -> float:
    """Return a model's importance within the bounds of an episode."""
    told = to_unit_interval(offered)
    return USUAL if told is None else min(MOST, max(LEAST, told))


def _sessions(item: Mapping[str, Any]) -> tuple[str, ...]:
    named = to_list(item.get("sourceSessions") or item.get("source_sessions"))
    return tuple(dict.fromkeys(one for one in named if isinstance(one, str) and one.strip()))


def checked(
    continued: Iterable[EpisodeUpdate], kept: Mapping[str, Memory]
) -> tuple[list[EpisodeUpdate], list[Rejection]]:
    """Part what may replace the text of an episode that was shown from what may not.

    The new text must hold what the old one said; what it adds is the news.
    """
    accepted: dict[str, EpisodeUpdate] = {}
    rejections: list[Rejection] = []
    for index, one in enumerate(continued):
        refusal = _refusal(one, kept.get(one.id))
        if refusal is None and one.id in accepted:
            refusal = Fault(RejectionCode.SOURCE_TAKEN, "is continued by an earlier item", ())
        if refusal is None:
            accepted[one.id] = one
        else:
            item = item_reference("continuation", (one.id,), index)
            rejections.append(Rejection(refusal.code, item, refusal.detail, refusal.words))
    return list(accepted.values()), rejections


def _refusal(one: EpisodeUpdate, kept: Memory | None) -> Fault | None:
    if kept is None or not is_below(EPISODES, kept.category):
        return Fault(RejectionCode.UNKNOWN_ID, "no episode that was shown", ())
    if kept.archived_at is not None:
        return Fault(RejectionCode.NOT_LIVE, "is archived", ())
    return fidelity.lost_content(one.content, [kept])
