"""Preferences: a model marks where a user shows one and how strongly, code counts and decides.

A preference is due when it was shown once very irritated, twice mildly frustrated, or three times
casually. Mixed sightings add up by the same scale: each counts for what it is of its own threshold,
in sixths 6, 3 and 2, and six are due. So one mild and two casual ones are due, one and one are not.

A sighting is one place: a session and the turns in it where the wish shows. Sightings of a key that
share a turn are one sighting at its strongest level, within a reply and across runs: a turn that is
read again, after a crash or by a repeated run, never counts twice. Keys are compared exactly, once
they are normalised; that the same wish gets the same key is the model's part, which is shown those
there are.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from shared.dreams.passes.sensitive_topics import is_sensitive
from shared.dreams.verification import labels
from shared.dreams.verification.merge import INFERRED, PERMISSION
from shared.dreams.verification.plan import to_list
from shared.foundation import errors, model_output, validation
from shared.foundation.categories import PREFERENCES
from shared.memory.longterm.memory import MAX_CONTENT, MemoryDraft, Source

THRESHOLD = 6
_KEY_LENGTH = 128
_QUOTE_LENGTH = 300
_SEPARATORS = re.compile(r"[\W_]+")


class Level(StrEnum):
    """How strongly a wish was shown."""

    VERY_IRRITATED = "very_irritated"
    MILDLY_FRUSTRATED = "mildly_frustrated"
    CASUAL = "casual"

    @property
    def weight(self) -> int:
        """Sixths of a threshold."""
        return {Level.VERY_IRRITATED: 6, Level.MILDLY_FRUSTRATED: 3, Level.CASUAL: 2}[self]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place where a wish showed."""

    session_id: str
    seqs: frozenset[int]
    level: Level

    def overlaps(self, other: "Evidence") -> bool:
        """Tell whether both are the same place."""
        return self.session_id == other.session_id and not self.seqs.isdisjoint(other.seqs)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """What a model marked: a sighting, and the wish in words."""

    key: str
    content: str
    category: str
    tags: tuple[str, ...]
    sighting: Evidence
    quote: str | None = None


@dataclass(frozen=True, slots=True)
class PreferenceCount:
    """What is known of a key after a run. `occurrence` words it best: strongest, then latest."""

    key: str
    sightings: tuple[Evidence, ...]
    occurrence: Occurrence
    was_due: bool

    @property
    def is_due(self) -> bool:
        """Tell whether its threshold is reached, now or before."""
        return _points(self.sightings) >= THRESHOLD


def parse(reply: str) -> list[Occurrence]:
    """Read the usable marks of a reply; errors.BadReply when it holds no list of them.

    A mark without content, level, session or turn says nothing that could be counted, and is left out.
    """
    read = (_occurrence(item) for item in model_output.parse_listed_objects(reply, "occurrences"))
    return [one for one in read if one is not None]


def _occurrence(item: Mapping[str, Any]) -> Occurrence | None:
    content, sighting = _storable(item.get("content"), MAX_CONTENT), _sighting(item)
    if content is None or sighting is None:
        return None
    key = item.get("key")
    return Occurrence(
        key=normalize(key if isinstance(key, str) else "") or normalize(content),
        content=content,
        category=labels.category_below(PREFERENCES, item.get("category"), f"{PREFERENCES}/{INFERRED}"),
        tags=labels.sanitize_tags(to_list(item.get("tags")), INFERRED),
        sighting=sighting,
        quote=_storable(item.get("quote"), _QUOTE_LENGTH),
    )


def _storable(text: Any, most: int) -> str | None:
    try:
        return validation.check_text(text.strip(), "text", most) if isinstance(text, str) else None
    except errors.Invalid:
        return None


def _sighting(item: Mapping[str, Any]) -> Evidence | None:
    session = item.get("sessionId") or item.get("session_id") or item.get("session")
    seqs = item.get("seqs") if item.get("seqs") is not None else item.get("seq")
    told = seqs if isinstance(seqs, list) else [seqs]
    turns = frozenset(seq for seq in told if isinstance(seq, int) and not isinstance(seq, bool))
    level = _LEVELS.get(normalize(str(item.get("level"))))
    if not isinstance(session, str) or not turns or level is None:
        return None
    return Evidence(session, turns, level)


def normalize(key: str) -> str:
    """Return a key as it is compared: case folded, words joined by `-`, at most 128 characters."""
    plain = unicodedata.normalize("NFKC", key).casefold()
    return _SEPARATORS.sub("-", plain).strip("-")[:_KEY_LENGTH].strip("-")


_LEVELS = {normalize(level): level for level in Level}


def with_read_turns(marked: Iterable[Occurrence], read: Collection[tuple[str, int]]) -> list[Occurrence]:
    """Return what stands in turns that were read, as (session id, seq): a model may name any turn."""
    found: list[Occurrence] = []
    for one in marked:
        place = one.sighting
        seqs = frozenset(seq for seq in place.seqs if (place.session_id, seq) in read)
        if seqs:
            sighting = Evidence(place.session_id, seqs, place.level)
            found.append(Occurrence(one.key, one.content, one.category, one.tags, sighting, one.quote))
    return found


def tallied(counted: Mapping[str, Sequence[Evidence]], fresh: Iterable[Occurrence]) -> list[PreferenceCount]:
    """Add what was marked to what was counted before; one tally for each key that was marked."""
    by_key: dict[str, list[Occurrence]] = {}
    for one in fresh:
        by_key.setdefault(normalize(one.key), []).append(one)
    before = {normalize(key): sightings for key, sightings in counted.items()}
    return [_tally(key, before.get(key, ()), marked) for key, marked in by_key.items()]


def newly_due(
    counted: Mapping[str, Sequence[Evidence]], fresh: Iterable[Occurrence]
) -> list[PreferenceCount]:
    """Return the keys that reach their threshold with what was marked now, and not before."""
    return [tally for tally in tallied(counted, fresh) if tally.is_due and not tally.was_due]


def _tally(key: str, before: Sequence[Evidence], marked: Sequence[Occurrence]) -> PreferenceCount:
    known = _distinct(before)
    return PreferenceCount(
        key=key,
        sightings=_distinct([*before, *(one.sighting for one in marked)]),
        occurrence=max(reversed(marked), key=lambda one: one.sighting.level.weight),
        was_due=_points(known) >= THRESHOLD,
    )


def _points(sightings: Iterable[Evidence]) -> int:
    return sum(one.level.weight for one in sightings)


def _distinct(sightings: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Fold sightings that share a turn, also those that only a third one connects."""
    distinct: list[Evidence] = []
    for one in sightings:
        same = [other for other in distinct if other.overlaps(one)]
        seqs = one.seqs.union(*(other.seqs for other in same))
        level = max((one.level, *(other.level for other in same)), key=lambda level: level.weight)
        distinct = [other for other in distinct if other not in same] + [
            Evidence(one.session_id, seqs, level)
        ]
    return tuple(distinct)


def to_draft(tally: PreferenceCount) -> MemoryDraft:
    """Return the entry of a preference that is due. Where acting on it needs the user's word, it says so."""
    one = tally.occurrence
    said = "\n".join([one.content, one.quote or "", one.category, *one.tags, tally.key.replace("-", " ")])
    permission = {PERMISSION: "true"} if is_sensitive(said) else {}
    return MemoryDraft(
        content=one.content,
        category=one.category,
        tags=one.tags,
        metadata={"source": INFERRED} | permission,
        source=Source(session_id=one.sighting.session_id, seq=max(one.sighting.seqs), role="user"),
        enrich=False,
    )
