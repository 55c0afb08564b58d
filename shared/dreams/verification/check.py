"""Which part of a plan may be done to a scope, and why the rest may not.

A plan comes from a model that read entries which anybody may have written, so nothing in it is
believed. What is accepted can lose no fact: every source of a merge is archived behind an entry that
holds its names, numbers, dates, quotations and negations; only what the model calls ephemeral, and
nothing protected, goes without a successor, at most a fifth of the scope in a run.

An item is accepted or rejected as a whole. Each replacement and each distinct id to delete ends in
exactly one of `merges`, `prunes` or `rejections` (a deletion of a merge's source is part of the
merge). Source ids that were never offered are dropped, each replacement's in one rejection of kind
`source`; they don't harm what remains. The sources of a rejected replacement stay, whatever else the
plan says of them. Replacements are judged first, in the plan's order: an id counts as taken only by
one that was accepted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shared.dreams.verification import anti_pattern_form, fidelity, merge
from shared.dreams.verification.merge import MergedFields
from shared.dreams.verification.plan import EPHEMERAL, Plan, Replacement
from shared.dreams.verification.rejection import Rejection, RejectionCode, item_reference
from shared.foundation import errors, validation
from shared.foundation.categories import ACTIVE_PLANS, is_anti_pattern, is_below
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.memory.longterm.fingerprint import normalize
from shared.memory.longterm.memory import MAX_CONTENT, Memory

PROTECTED_IMPORTANCE = 0.8
PROTECTED_REINFORCEMENT = 5
PRUNE_ONE_IN = 5
"""A run may prune one in so many of a scope's entries: 20 %."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a plan was made from: the offered entries by id, of a scope of `scope_size` live ones.

    `pruned_already` counts what earlier chunks of the same run pruned.
    """

    scope: Scope
    entries: Mapping[str, Memory]
    scope_size: int
    pruned_already: int = 0

    @property
    def prune_quota(self) -> int:
        """How many entries may still be pruned in this run."""
        return max(0, self.scope_size // PRUNE_ONE_IN - self.pruned_already)

    def left_after(self, checked: "CheckedPlan") -> "Snapshot":
        """Return what can still be offered once the accepted part of a plan counts as done."""
        left = {id_: entry for id_, entry in self.entries.items() if id_ not in checked.archived_ids}
        return replace(self, entries=left, pruned_already=self.pruned_already + len(checked.prunes))


@dataclass(frozen=True, slots=True)
class Merge:
    """A replacement to do: save `fields`, then archive every source. `index`: its place in the plan."""

    index: int
    source_ids: tuple[str, ...]
    fields: MergedFields


@dataclass(frozen=True, slots=True)
class Prune:
    """An entry to archive without successor."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class CheckedPlan:
    """The accepted part of a plan and the refused one."""

    merges: tuple[Merge, ...]
    prunes: tuple[Prune, ...]
    rejections: tuple[Rejection, ...]

    @property
    def archived_ids(self) -> frozenset[str]:
        """The entries that are archived when this is done."""
        merged = {source for one in self.merges for source in one.source_ids}
        return frozenset(merged | {prune.id for prune in self.prunes})


class _Refused(Exception):
    """A rule says no. Raised and caught in this module only."""

    def __init__(self, code: RejectionCode, detail: str, words: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.code = code
        self.words = tuple(words)


def check(plan: Plan, snapshot: Snapshot) -> CheckedPlan:
    """Return what of a plan may be done to the entries of a snapshot."""
    merges, kept, rejections = _merges(plan.replacements, snapshot)
    merged = {source for one in merges for source in one.source_ids}
    reasons: dict[str, str] = {}
    for one in plan.deletions:
        reasons.setdefault(one.id, one.reason)
    prunes: list[Prune] = []
    for id_, reason in reasons.items():
        if id_ in merged:
            continue
        try:
            _check_prune(id_, reason, snapshot, kept, len(prunes))
            prunes.append(Prune(id_, reason))
        except _Refused as refused:
            rejections.append(_rejection(refused, "deletion", (id_,)))
    return CheckedPlan(tuple(merges), tuple(prunes), tuple(rejections))


def _merges(
    replacements: Sequence[Replacement], snapshot: Snapshot
) -> tuple[list[Merge], set[str], list[Rejection]]:
    """Return the accepted replacements, the sources of the others, and why."""
    merges: list[Merge] = []
    taken: set[str] = set()
    kept: set[str] = set()
    rejections: list[Rejection] = []
    for index, one in enumerate(replacements):
        offered = dict.fromkeys(one.source_ids)
        known = tuple(id_ for id_ in offered if id_ in snapshot.entries)
        unknown = tuple(id_ for id_ in offered if id_ not in snapshot.entries)
        if unknown:
            detail = "sources that were not offered are left out"
            rejections.append(
                Rejection(RejectionCode.UNKNOWN_ID, item_reference("source", unknown, index), detail)
            )
        try:
            fields = _merged(one, [snapshot.entries[id_] for id_ in known], snapshot.scope, taken)
            merges.append(Merge(index, known, fields))
            taken.update(known)
        except _Refused as refused:
            kept.update(known)
            rejections.append(_rejection(refused, "replacement", known, index))
    return merges, kept - taken, rejections


def _merged(one: Replacement, sources: Sequence[Memory], scope: Scope, taken: set[str]) -> MergedFields:
    if not sources:
        raise _Refused(RejectionCode.NO_SOURCES, "a replacement needs a source that was offered")
    for entry in sources:
        _check_touchable(entry, scope)
    if any(entry.id in taken for entry in sources):
        raise _Refused(RejectionCode.SOURCE_TAKEN, "an earlier replacement has a source of this one")
    _check_content(one.content)
    fields = merge.merged(one, sources)
    _check_change(fields, sources)
    if len(fields.tags) > validation.MAX_TAGS or len(fields.metadata) > validation.MAX_METADATA_PAIRS:
        raise _Refused(
            RejectionCode.TOO_MANY_LABELS, "tags or metadata of the sources don't fit in one entry"
        )
    _check_form(fields.content, sources)
    if found := fidelity.first_fault(fields.content, sources):
        raise _Refused(found.code, found.detail, found.words)
    return fields


def _check_touchable(entry: Memory, scope: Scope) -> None:
    if entry.scope != scope:
        raise _Refused(RejectionCode.CROSSES_USERS, "belongs to another tenant, agent or user than this run")
    if entry.archived_at is not None or entry.state is MemoryState.ARCHIVED:
        raise _Refused(RejectionCode.NOT_LIVE, "is archived")
    if is_below(ACTIVE_PLANS, entry.category):
        raise _Refused(RejectionCode.ACTIVE_PLAN, "active plans are left alone")


def _check_content(content: str) -> None:
    if not any(character.isalnum() for character in content):
        raise _Refused(RejectionCode.BLANK, "a replacement without content; its sources stay")
    try:
        validation.check_text(content, "content", MAX_CONTENT)
    except errors.TooLarge as error:
        raise _Refused(RejectionCode.TOO_LONG, str(error)) from error
    except errors.Invalid as error:
        raise _Refused(RejectionCode.UNSTORABLE, str(error)) from error


def _check_change(fields: MergedFields, sources: Sequence[Memory]) -> None:
    """Refuse to archive an entry for the sake of an equal one."""
    if len(sources) > 1:
        return
    before = sources[0]
    same_words = normalize(fields.content) == normalize(before.content)
    if same_words and fields.category == before.category and set(fields.tags) == set(before.tags):
        raise _Refused(RejectionCode.UNCHANGED, "says what its only source says")


def _check_form(content: str, sources: Sequence[Memory]) -> None:
    warnings = [entry for entry in sources if is_anti_pattern(entry.category, entry.tags)]
    formed = any(anti_pattern_form.is_well_formed(entry.content) for entry in warnings)
    if formed and not anti_pattern_form.is_well_formed(content):
        raise _Refused(
            RejectionCode.MALFORMED, "an anti-pattern must stay: Don't X for/because Y \u2014 instead Z"
        )


def _check_prune(id_: str, reason: str, snapshot: Snapshot, kept: set[str], pruned: int) -> None:
    entry = snapshot.entries.get(id_)
    if entry is None:
        raise _Refused(RejectionCode.UNKNOWN_ID, "was not offered")
    _check_touchable(entry, snapshot.scope)
    if id_ in kept:
        raise _Refused(RejectionCode.NEEDS_REPLACEMENT, "its replacement was rejected")
    if reason != EPHEMERAL:
        raise _Refused(RejectionCode.NEEDS_REPLACEMENT, "only what is ephemeral goes without a replacement")
    if is_protected(entry):
        raise _Refused(
            RejectionCode.PROTECTED, "too important, too often seen, a warning, or a matter of permission"
        )
    if pruned >= snapshot.prune_quota:
        raise _Refused(
            RejectionCode.OVER_QUOTA, f"a run prunes at most one in {PRUNE_ONE_IN} of a scope's entries"
        )


def is_protected(entry: Memory) -> bool:
    """Tell whether an entry never goes without a successor."""
    return (
        entry.importance >= PROTECTED_IMPORTANCE
        or entry.reinforcement_count >= PROTECTED_REINFORCEMENT
        or is_anti_pattern(entry.category, entry.tags)
        or merge.needs_permission(entry)
    )


def _rejection(refused: _Refused, kind: str, ids: Sequence[str], index: int | None = None) -> Rejection:
    return Rejection(refused.code, item_reference(kind, ids, index), str(refused), refused.words)
