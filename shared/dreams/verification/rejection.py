"""Why a proposed item was refused: a code to count by, the ids it is about, and a sentence.

A rejection is shown to operators and kept with its run, so it never carries a memory's text, but for
the lost words, which the model needs for its second attempt.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_ID = re.compile(r"[0-9a-f]{12}")
_MOST_IDS = 50


class RejectionCode(StrEnum):
    """The kinds of refusal; each is a label of a metric."""

    UNKNOWN_ID = "unknown_id"  # not among the entries that were offered
    NO_SOURCES = "no_sources"  # a replacement of nothing: a model may not invent facts
    NOT_LIVE = "not_live"  # archived meanwhile
    CROSSES_USERS = "crosses_users"  # of another tenant, agent or user than the run's
    ACTIVE_PLAN = "active_plan"  # plans at work are nobody's to tidy
    SOURCE_TAKEN = "source_taken"  # an earlier replacement has this source
    BLANK = "blank"  # no content
    TOO_LONG = "too_long"  # content over the limit of an entry
    UNSTORABLE = "unstorable"  # content that a store would refuse
    TOO_MANY_LABELS = "too_many_labels"  # tags or metadata of the sources would not fit in one entry
    LOSES_SPECIFICS = "loses_specifics"  # a name, number, date, quotation, … of a source is gone
    LOSES_GIST = "loses_gist"  # hardly a word of a source is left
    CHANGES_NEGATION = "reverses"  # a "not" came or went
    ADDS_SPECIFICS = "invents"  # a name or number that no source has
    MALFORMED = "malformed"  # an anti-pattern that is none any more, or an item of no usable form
    NEEDS_REPLACEMENT = "needs_replacement"  # to go without successor, and not as ephemeral
    PROTECTED = "protected"  # too important to go without a successor
    OVER_QUOTA = "over_quota"  # more than a run may prune
    UNCHANGED = "unchanged"  # the same as its only source
    DUPLICATE = "duplicate"  # says what an entry says already


REPAIRABLE = frozenset(
    {
        RejectionCode.LOSES_SPECIFICS,
        RejectionCode.LOSES_GIST,
        RejectionCode.CHANGES_NEGATION,
        RejectionCode.ADDS_SPECIFICS,
    }
)
"""What a model can mend when it is told what is wrong."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A refused item. `item`: {kind, ids, index?}, JSON; `detail`: the rule, and the words it is about."""

    code: RejectionCode
    item: dict[str, Any]
    detail: str
    words: tuple[str, ...] = ()


def item_reference(kind: str, ids: Iterable[str], index: int | None = None) -> dict[str, Any]:
    """Describe an item of a plan. What a model wrote in place of an id could be anybody's words: `?`."""
    shown = list(ids)
    item: dict[str, Any] = {"kind": kind, "ids": [i if _ID.fullmatch(i) else "?" for i in shown[:_MOST_IDS]]}
    if len(shown) > _MOST_IDS:
        item["more"] = len(shown) - _MOST_IDS
    return item if index is None else item | {"index": index}
