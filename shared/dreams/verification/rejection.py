"""Why a proposed item was rejected: a code to count by, the ids of the item, and a sentence.

A rejection is stored with its run and shown to operators, so it never carries the text of a memory. The
only exception is the lost words, which the model needs for its second attempt.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_ID = re.compile(r"[0-9a-f]{12}")
_MAX_IDS = 50


class RejectionCode(StrEnum):
    """The kinds of rejection. Each is a label of a metric."""

    UNKNOWN_ID = "unknown_id"  # not among the memories that were offered
    NO_SOURCES = "no_sources"  # a replacement without sources: a model may not add facts
    NOT_LIVE = "not_live"  # archived
    CROSSES_USERS = "crosses_users"  # belongs to another tenant, agent or user than the run
    ACTIVE_PLAN = "active_plan"  # active plans are never changed
    SOURCE_TAKEN = "source_taken"  # an earlier replacement has this source
    BLANK = "blank"  # no content
    TOO_LONG = "too_long"  # content over the limit of a memory
    UNSTORABLE = "unstorable"  # content that a database would refuse
    TOO_MANY_LABELS = "too_many_labels"  # tags or metadata of the sources don't fit in one memory
    LOSES_SPECIFICS = "loses_specifics"  # a name, number, date, quotation, … of a source is lost
    LOSES_GIST = "loses_gist"  # nearly all words of a source are lost
    CHANGES_NEGATION = "changes_negation"  # a negation was added or lost
    SWAPS_SPECIFICS = "swaps_specifics"  # says of one name what the sources say of another
    ADDS_SPECIFICS = "adds_specifics"  # a name or number is in no source
    MALFORMED = "malformed"  # an anti-pattern that lost its form, or an item of no usable form
    NEEDS_REPLACEMENT = "needs_replacement"  # may only be archived with a successor
    PROTECTED = "protected"  # too important to be archived without a successor, or to be closed by mining
    OVER_QUOTA = "over_quota"  # over the number of memories that a run may prune
    UNCHANGED = "unchanged"  # says the same as its only source
    DUPLICATE = "duplicate"  # says the same as an existing memory
    UNUSABLE_REPLY = "unusable_reply"  # the model's reply about these inputs was not what was asked for
    CUT_OFF = "cut_off"  # the model's reply about these inputs was cut off, also in small parts
    CHANGED_MEANWHILE = "changed_meanwhile"  # a source changed while the model was asked
    UNCONFIRMED = "unconfirmed"  # an assistant said it, and the user did not confirm it
    UNRELATED = "unrelated"  # replaces a memory about something else
    MISQUOTED = "misquoted"  # quotes what no source says
    NOT_SAID = "not_said"  # the judge finds that the evidence does not say it
    CONTRADICTED = "contradicted"  # the judge finds that the evidence says otherwise
    UNTRUSTED = "untrusted"  # gives text of outside a label that leads agents: only a caller may
    READ_BEFORE = "read_before"  # every turn that says it was mined before
    OUTDATED = "outdated"  # older than the memory that it replaces
    FORGOTTEN = "forgotten"  # a caller has deleted this text
    UNDONE_BEFORE = "undone_before"  # the same was done before and undone
    REPAIR_FAILED = "repair_failed"  # the second attempt brought no usable reply


REPAIRABLE = frozenset(
    {
        RejectionCode.LOSES_SPECIFICS,
        RejectionCode.LOSES_GIST,
        RejectionCode.CHANGES_NEGATION,
        RejectionCode.SWAPS_SPECIFICS,
        RejectionCode.ADDS_SPECIFICS,
    }
)
"""Codes of changes of skills that a model can repair if it is asked again with the reason."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected item. `item` is {kind, ids, index?}, `detail` the rule, `words` the words concerned."""

    code: RejectionCode
    item: dict[str, Any]
    detail: str
    words: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as it is stored with its run: {code, detail, kind, ids, …}, without the words."""
        return {"code": self.code, "detail": self.detail, **self.item}


def item_reference(kind: str, ids: Iterable[str], index: int | None = None) -> dict[str, Any]:
    """Return an item of a plan as {kind, ids, index?, more?}, with at most 50 ids.

    What is no id becomes `?`, because a model could have written the text of a memory there.
    """
    all_ids = list(ids)
    safe_ids = [id_ if _ID.fullmatch(id_) else "?" for id_ in all_ids[:_MAX_IDS]]
    item: dict[str, Any] = {"kind": kind, "ids": safe_ids}
    if len(all_ids) > _MAX_IDS:
        item["more"] = len(all_ids) - _MAX_IDS
    return item if index is None else item | {"index": index}
