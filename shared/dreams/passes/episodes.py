"""Episodes: stories with an outcome, taken from the conversation log, and updates of existing episodes.

Importance stays between 0.2 and 0.7. A model can't make an episode more important than anything else that it
writes, and what is worth less than 0.2 would not be worth saving.
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
from shared.memory.longterm.labels import MAX_GIVEN_IMPORTANCE
from shared.memory.longterm.memory import MAX_CONTENT, Memory, MemoryDraft, Source

KINDS = ("conversation", "task", "decision", "discovery", "problem")
MIN_IMPORTANCE, DEFAULT_IMPORTANCE, MAX_IMPORTANCE = 0.2, 0.4, MAX_GIVEN_IMPORTANCE
_ID = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Episode:
    """Something that happened. `session_ids` are its sessions, as far as the model named them."""

    content: str
    category: str
    tags: tuple[str, ...]
    importance: float
    session_ids: tuple[str, ...]

    @property
    def draft(self) -> MemoryDraft:
        """The memory to save."""
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
    """The continuation of an existing episode. `content` replaces its whole text."""

    id: str
    content: str
    importance: float
    session_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Episodes:
    """The episodes that a model found in a part of the conversation log."""

    new: tuple[Episode, ...]
    continued: tuple[EpisodeUpdate, ...]


def parse(reply: str) -> Episodes:
    """Parse `{toSave: […], toUpdate: […]}`. Items without usable content or id are left out.

    Raises errors.InvalidModelReply if the reply has no such object.
    """
    payload = model_output.parse_object(reply, "toSave", "toUpdate")
    new = (_parse_episode(item) for item in model_output.listed_objects(payload.get("toSave")))
    continued = (_parse_update(item) for item in model_output.listed_objects(payload.get("toUpdate")))
    return Episodes(tuple(filter(None, new)), tuple(filter(None, continued)))


def _parse_episode(item: Mapping[str, Any]) -> Episode | None:
    content = _parse_content(item)
    if content is None:
        return None
    kind = str(item.get("category") or "").strip().lower().rpartition("/")[2]
    return Episode(
        content=content,
        category=f"{EPISODES}/{kind if kind in KINDS else KINDS[0]}",
        tags=labels.sanitize_tags(to_list(item.get("tags")), EPISODES),
        importance=clamp_importance(item.get("importance")),
        session_ids=_parse_sessions(item),
    )


def _parse_update(item: Mapping[str, Any]) -> EpisodeUpdate | None:
    content, id_ = _parse_content(item), str(item.get("id")).strip(" []").lower().removeprefix("id:")
    if content is None or _ID.fullmatch(id_) is None:
        return None
    return EpisodeUpdate(id_, content, clamp_importance(item.get("importance")), _parse_sessions(item))


def _parse_content(item: Mapping[str, Any]) -> str | None:
    content = item.get("content")
    if not isinstance(content, str):
        return None
    try:
        return validation.check_text(content.strip(), "content", MAX_CONTENT)
    except errors.Invalid:
        return None


def clamp_importance(value: Any) -> float:
    """Return a model's importance within the bounds of an episode, or the default if it is no number."""
    number = to_unit_interval(value)
    return DEFAULT_IMPORTANCE if number is None else min(MAX_IMPORTANCE, max(MIN_IMPORTANCE, number))


def _parse_sessions(item: Mapping[str, Any]) -> tuple[str, ...]:
    values = to_list(item.get("sourceSessions") or item.get("source_sessions"))
    return tuple(dict.fromkeys(value for value in values if isinstance(value, str) and value.strip()))


def check_updates(
    updates: Iterable[EpisodeUpdate], shown_episodes: Mapping[str, Memory]
) -> tuple[list[EpisodeUpdate], list[Rejection]]:
    """Return the updates to apply and the rejections of the others.

    `shown_episodes` are the memories that the model was shown, by id. The new text must keep what the old
    one says and may add to it.
    """
    accepted: dict[str, EpisodeUpdate] = {}
    rejections: list[Rejection] = []
    for index, update in enumerate(updates):
        fault = _find_fault(update, shown_episodes.get(update.id))
        if fault is None and update.id in accepted:
            fault = Fault(RejectionCode.SOURCE_TAKEN, "is continued by an earlier item", ())
        if fault is None:
            accepted[update.id] = update
        else:
            item = item_reference("continuation", (update.id,), index)
            rejections.append(Rejection(fault.code, item, fault.detail, fault.words))
    return list(accepted.values()), rejections


def _find_fault(update: EpisodeUpdate, episode: Memory | None) -> Fault | None:
    if episode is None or not is_below(EPISODES, episode.category):
        return Fault(RejectionCode.UNKNOWN_ID, "no episode that was shown", ())
    if episode.archived_at is not None:
        return Fault(RejectionCode.NOT_LIVE, "is archived", ())
    return fidelity.lost_content(update.content, [episode])
