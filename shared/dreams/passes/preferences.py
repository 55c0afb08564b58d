"""Preferences: a model marks where a user shows one and how strongly; code counts and decides.

A preference is due when it was shown once very irritated, twice mildly frustrated, or three times
casually. Mixed levels add up: each piece of evidence counts as its part of its own threshold, in sixths
6, 3 and 2, and six sixths are due. One mild and two casual ones are due; one and one are not.

A piece of evidence is a session and the turns in it where the wish shows. Evidence of one key that
shares a turn is one piece at its strongest level, within a reply and across runs. A turn that is read
again, after a crash or by a repeated run, therefore never counts twice.

Keys are compared exactly, after normalisation. The model is shown the existing keys, so that it can give
the same wish the same key.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from shared.dreams.verification import labels
from shared.dreams.verification.plan import to_list
from shared.foundation import errors, model_output, validation
from shared.foundation.categories import PREFERENCES
from shared.foundation.sensitive_topics import is_sensitive
from shared.memory.longterm.labels import INFERRED, PERMISSION
from shared.memory.longterm.memory import MAX_CONTENT, MemoryDraft, Source

THRESHOLD = 6
_MAX_KEY_LENGTH = 128
_MAX_QUOTE_LENGTH = 300
_SEPARATORS = re.compile(r"[\W_]+")


class Level(StrEnum):
    """How strongly a wish was shown."""

    VERY_IRRITATED = "very_irritated"
    MILDLY_FRUSTRATED = "mildly_frustrated"
    CASUAL = "casual"

    @property
    def weight(self) -> int:
        """The weight of one piece of evidence, in sixths of the threshold."""
        return {Level.VERY_IRRITATED: 6, Level.MILDLY_FRUSTRATED: 3, Level.CASUAL: 2}[self]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place where a wish was shown: the turns of a session, and how strongly."""

    session_id: str
    seqs: frozenset[int]
    level: Level

    def overlaps(self, other: "Evidence") -> bool:
        """Tell whether both share a turn."""
        return self.session_id == other.session_id and not self.seqs.isdisjoint(other.seqs)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A mark of the model: a piece of evidence, and the wish in words."""

    key: str
    content: str
    category: str
    tags: tuple[str, ...]
    evidence: Evidence
    quote: str | None = None


@dataclass(frozen=True, slots=True)
class PreferenceCount:
    """The evidence for a key after a run. `occurrence` is its best wording: the strongest, then latest."""

    key: str
    evidence: tuple[Evidence, ...]
    occurrence: Occurrence
    was_due: bool

    @property
    def is_due(self) -> bool:
        """Whether the threshold is reached, by this run or before it."""
        return _total_weight(self.evidence) >= THRESHOLD


def parse(reply: str) -> list[Occurrence]:
    """Parse the usable marks of a reply.

    A mark without content, level, session or turn can't be counted and is left out. Raises
    errors.InvalidModelReply if the reply has no list of marks.
    """
    items = model_output.parse_listed_objects(reply, "occurrences")
    return [occurrence for item in items if (occurrence := _parse_occurrence(item)) is not None]


def _parse_occurrence(item: Mapping[str, Any]) -> Occurrence | None:
    content, evidence = _storable_text(item.get("content"), MAX_CONTENT), _parse_evidence(item)
    if content is None or evidence is None:
        return None
    key = item.get("key")
    return Occurrence(
        key=normalize(key if isinstance(key, str) else "") or normalize(content),
        content=content,
        category=labels.category_below(PREFERENCES, item.get("category"), f"{PREFERENCES}/{INFERRED}"),
        tags=labels.sanitize_tags(to_list(item.get("tags")), INFERRED),
        evidence=evidence,
        quote=_storable_text(item.get("quote"), _MAX_QUOTE_LENGTH),
    )


def _storable_text(text: Any, max_length: int) -> str | None:
    try:
        return validation.check_text(text.strip(), "text", max_length) if isinstance(text, str) else None
    except errors.Invalid:
        return None


def _parse_evidence(item: Mapping[str, Any]) -> Evidence | None:
    session = item.get("sessionId") or item.get("session_id") or item.get("session")
    value = item.get("seqs") if item.get("seqs") is not None else item.get("seq")
    numbers = value if isinstance(value, list) else [value]
    seqs = frozenset(seq for seq in numbers if isinstance(seq, int) and not isinstance(seq, bool))
    level = _LEVELS.get(normalize(str(item.get("level"))))
    if not isinstance(session, str) or not seqs or level is None:
        return None
    return Evidence(session, seqs, level)


def normalize(key: str) -> str:
    """Return the compared form of a key: case folded, words joined by `-`, at most 128 characters."""
    folded = unicodedata.normalize("NFKC", key).casefold()
    return _SEPARATORS.sub("-", folded).strip("-")[:_MAX_KEY_LENGTH].strip("-")


_LEVELS = {normalize(level): level for level in Level}


def with_read_turns(
    occurrences: Iterable[Occurrence], read_turns: Collection[tuple[str, int]]
) -> list[Occurrence]:
    """Return the occurrences with only those turns, given as (session id, seq), that the pass has read.

    A model may name any turn. An occurrence without a turn that was read is left out.
    """
    confirmed: list[Occurrence] = []
    for occurrence in occurrences:
        evidence = occurrence.evidence
        seqs = frozenset(seq for seq in evidence.seqs if (evidence.session_id, seq) in read_turns)
        if seqs:
            confirmed.append(replace(occurrence, evidence=replace(evidence, seqs=seqs)))
    return confirmed


def count_by_key(
    evidence_by_key: Mapping[str, Sequence[Evidence]], occurrences: Iterable[Occurrence]
) -> list[PreferenceCount]:
    """Add new occurrences to the evidence that was counted before. Return a count per key that they have."""
    new_by_key: dict[str, list[Occurrence]] = {}
    for occurrence in occurrences:
        new_by_key.setdefault(normalize(occurrence.key), []).append(occurrence)
    before = {normalize(key): evidence for key, evidence in evidence_by_key.items()}
    return [_count_key(key, before.get(key, ()), new) for key, new in new_by_key.items()]


def newly_due(
    evidence_by_key: Mapping[str, Sequence[Evidence]], occurrences: Iterable[Occurrence]
) -> list[PreferenceCount]:
    """Return the keys that reach their threshold with the new occurrences and had not reached it before."""
    return [
        count for count in count_by_key(evidence_by_key, occurrences) if count.is_due and not count.was_due
    ]


def _count_key(key: str, before: Sequence[Evidence], new: Sequence[Occurrence]) -> PreferenceCount:
    return PreferenceCount(
        key=key,
        evidence=_join_overlapping([*before, *(occurrence.evidence for occurrence in new)]),
        occurrence=max(reversed(new), key=lambda occurrence: occurrence.evidence.level.weight),
        was_due=_total_weight(_join_overlapping(before)) >= THRESHOLD,
    )


def _total_weight(evidence: Iterable[Evidence]) -> int:
    return sum(piece.level.weight for piece in evidence)


def _join_overlapping(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Join pieces that share a turn, also those that only a third one connects."""
    distinct: list[Evidence] = []
    for piece in evidence:
        overlapping = [other for other in distinct if other.overlaps(piece)]
        seqs = piece.seqs.union(*(other.seqs for other in overlapping))
        levels = (piece.level, *(other.level for other in overlapping))
        strongest = max(levels, key=lambda level: level.weight)
        distinct = [other for other in distinct if other not in overlapping]
        distinct.append(Evidence(piece.session_id, seqs, strongest))
    return tuple(distinct)


def to_draft(count: PreferenceCount) -> MemoryDraft:
    """Return the memory of a preference that is due, marked if acting on it needs the user's permission."""
    occurrence, evidence = count.occurrence, count.occurrence.evidence
    key_words = count.key.replace("-", " ")
    all_text = "\n".join(
        [occurrence.content, occurrence.quote or "", occurrence.category, *occurrence.tags, key_words]
    )
    permission = {PERMISSION: "true"} if is_sensitive(all_text) else {}
    return MemoryDraft(
        content=occurrence.content,
        category=occurrence.category,
        tags=occurrence.tags,
        metadata={"source": INFERRED} | permission,
        source=Source(session_id=evidence.session_id, seq=max(evidence.seqs), role="user"),
        enrich=False,
    )
