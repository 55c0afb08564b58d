"""Check the form of a model's plan: which part of it could be applied to a scope, and why the rest may not.

A plan comes from a model that has read memories by unknown authors, so nothing in it is trusted. Whether the
text of a merge says what its sources say is decided in `shared/verification`. Only a memory that the model
calls ephemeral and that nothing protects is archived without a successor, and at most a fifth of the scope in
one run.

An item is accepted or rejected as a whole. Each replacement and each distinct id to delete ends in
exactly one of `merges`, `prunes` or `rejections`; the deletion of a merge's source is part of the merge.
Source ids that were not offered are dropped and reported in one rejection of kind `source` per
replacement. The sources of a rejected replacement stay, whatever else the plan says about them.
Replacements are checked first and in the plan's order. A source counts as taken only if an earlier
replacement with it was accepted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared.dreams.verification import anti_pattern_form, merge
from shared.dreams.verification.merge import MergedFields
from shared.dreams.verification.plan import EPHEMERAL, Plan, Replacement
from shared.dreams.verification.rejection import Rejection, RejectionCode, item_reference
from shared.foundation import errors, validation
from shared.foundation.categories import ACTIVE_PLANS, SAFETY, is_anti_pattern, is_below
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.memory.longterm.fingerprint import normalize
from shared.memory.longterm.memory import MAX_CONTENT, Memory

PROTECTED_IMPORTANCE = 0.8
PROTECTED_REINFORCEMENT = 5
PRUNE_ONE_IN = 5
"""A run may prune one in this many of a scope's memories: 20 %."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a plan was made from: the offered memories by id, of a scope with `scope_size` live ones.

    `pruned_count` counts the memories that earlier batches of the same run pruned.
    """

    scope: Scope
    memories: Mapping[str, Memory]
    scope_size: int
    pruned_count: int = 0

    @property
    def prune_quota(self) -> int:
        """The number of memories that this run may still prune."""
        return max(0, self.scope_size // PRUNE_ONE_IN - self.pruned_count)


@dataclass(frozen=True, slots=True)
class Merge:
    """A replacement to apply: save `fields`, then archive every source. `index` is its index in the plan."""

    index: int
    source_ids: tuple[str, ...]
    fields: MergedFields


@dataclass(frozen=True, slots=True)
class Prune:
    """A memory to archive without a successor."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class CheckedPlan:
    """The accepted and the rejected part of a plan."""

    merges: tuple[Merge, ...]
    prunes: tuple[Prune, ...]
    rejections: tuple[Rejection, ...]

    @property
    def archived_ids(self) -> frozenset[str]:
        """The memories that are archived when the accepted part is applied."""
        source_ids = {source_id for merge_ in self.merges for source_id in merge_.source_ids}
        return frozenset(source_ids | {prune.id for prune in self.prunes})


class _RuleViolation(Exception):
    """An item breaks a rule. Raised and caught in this module only."""

    def __init__(self, code: RejectionCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def check(plan: Plan, snapshot: Snapshot) -> CheckedPlan:
    """Return which items of a plan may be applied to the memories of a snapshot."""
    merges, unmerged_ids, rejections = _check_replacements(plan.replacements, snapshot)
    merged_ids = {source_id for merge_ in merges for source_id in merge_.source_ids}
    reasons: dict[str, str] = {}
    for deletion in plan.deletions:
        reasons.setdefault(deletion.id, deletion.reason)
    prunes: list[Prune] = []
    for id_, reason in reasons.items():
        if id_ in merged_ids:
            continue
        try:
            _check_prune(id_, reason, snapshot, unmerged_ids, len(prunes))
            prunes.append(Prune(id_, reason))
        except _RuleViolation as error:
            rejections.append(_rejection(error, "deletion", (id_,)))
    return CheckedPlan(tuple(merges), tuple(prunes), tuple(rejections))


def _check_replacements(
    replacements: Sequence[Replacement], snapshot: Snapshot
) -> tuple[list[Merge], set[str], list[Rejection]]:
    """Return the accepted replacements, the sources of rejected ones only, and the rejections."""
    merges: list[Merge] = []
    taken_ids: set[str] = set()
    unmerged_ids: set[str] = set()
    rejections: list[Rejection] = []
    for index, replacement in enumerate(replacements):
        source_ids, unknown_ids = _split_known(replacement, snapshot)
        if unknown_ids:
            detail = "sources that were not offered are left out"
            item = item_reference("source", unknown_ids, index)
            rejections.append(Rejection(RejectionCode.UNKNOWN_ID, item, detail))
        sources = [snapshot.memories[id_] for id_ in source_ids]
        try:
            fields = _checked_fields(replacement, sources, snapshot.scope, taken_ids)
            merges.append(Merge(index, source_ids, fields))
            taken_ids.update(source_ids)
        except _RuleViolation as error:
            unmerged_ids.update(source_ids)
            rejections.append(_rejection(error, "replacement", source_ids, index))
    return merges, unmerged_ids - taken_ids, rejections


def _split_known(replacement: Replacement, snapshot: Snapshot) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the distinct source ids that were offered, and those that were not."""
    distinct_ids = dict.fromkeys(replacement.source_ids)
    known_ids = tuple(id_ for id_ in distinct_ids if id_ in snapshot.memories)
    return known_ids, tuple(id_ for id_ in distinct_ids if id_ not in snapshot.memories)


def _checked_fields(
    replacement: Replacement, sources: Sequence[Memory], scope: Scope, taken_ids: set[str]
) -> MergedFields:
    """Return the fields of the merged memory; raise _RuleViolation if the merge may not be applied."""
    if not sources:
        raise _RuleViolation(RejectionCode.NO_SOURCES, "a replacement needs a source that was offered")
    for memory in sources:
        _check_touchable(memory, scope)
    if any(memory.id in taken_ids for memory in sources):
        raise _RuleViolation(RejectionCode.SOURCE_TAKEN, "an earlier replacement has a source of this one")
    _check_content(replacement.content)
    fields = merge.merge_fields(replacement, sources)
    _check_change(fields, sources)
    if merge.gives_unearned_label(fields, sources):
        raise _RuleViolation(
            RejectionCode.UNTRUSTED, "would give a source from outside a label that only a caller gives it"
        )
    if len(fields.tags) > validation.MAX_TAGS or len(fields.metadata) > validation.MAX_METADATA_PAIRS:
        raise _RuleViolation(
            RejectionCode.TOO_MANY_LABELS, "tags or metadata of the sources don't fit in one memory"
        )
    _check_form(fields.content, sources)
    return fields


def _check_touchable(memory: Memory, scope: Scope) -> None:
    if memory.scope != scope:
        raise _RuleViolation(
            RejectionCode.CROSSES_USERS, "belongs to another tenant, agent or user than this run"
        )
    if memory.archived_at is not None or memory.state is MemoryState.ARCHIVED:
        raise _RuleViolation(RejectionCode.NOT_LIVE, "is archived")
    if is_below(ACTIVE_PLANS, memory.category):
        raise _RuleViolation(RejectionCode.ACTIVE_PLAN, "active plans are never changed")


def _check_content(content: str) -> None:
    if not any(character.isalnum() for character in content):
        raise _RuleViolation(RejectionCode.BLANK, "a replacement without content; its sources stay")
    try:
        validation.check_text(content, "content", MAX_CONTENT)
    except errors.TooLarge as error:
        raise _RuleViolation(RejectionCode.TOO_LONG, str(error)) from error
    except errors.Invalid as error:
        raise _RuleViolation(RejectionCode.UNSTORABLE, str(error)) from error


def _check_change(fields: MergedFields, sources: Sequence[Memory]) -> None:
    """Refuse to archive a memory in favour of an equal one."""
    if len(sources) > 1:
        return
    (source,) = sources
    same_words = normalize(fields.content) == normalize(source.content)
    if same_words and fields.category == source.category and set(fields.tags) == set(source.tags):
        raise _RuleViolation(RejectionCode.UNCHANGED, "says what its only source says")


def _check_form(content: str, sources: Sequence[Memory]) -> None:
    """Refuse to turn a well-formed anti-pattern into a badly formed one."""
    warnings = [memory for memory in sources if is_anti_pattern(memory.category, memory.tags)]
    was_well_formed = any(anti_pattern_form.is_well_formed(memory.content) for memory in warnings)
    if was_well_formed and not anti_pattern_form.is_well_formed(content):
        raise _RuleViolation(
            RejectionCode.MALFORMED, "an anti-pattern must stay: Don't X for/because Y \u2014 instead Z"
        )


def _check_prune(
    id_: str, reason: str, snapshot: Snapshot, unmerged_ids: set[str], pruned_count: int
) -> None:
    memory = snapshot.memories.get(id_)
    if memory is None:
        raise _RuleViolation(RejectionCode.UNKNOWN_ID, "was not offered")
    _check_touchable(memory, snapshot.scope)
    if id_ in unmerged_ids:
        raise _RuleViolation(RejectionCode.NEEDS_REPLACEMENT, "its replacement was rejected")
    if reason != EPHEMERAL:
        raise _RuleViolation(
            RejectionCode.NEEDS_REPLACEMENT, "only an ephemeral memory is archived without a replacement"
        )
    if is_protected(memory):
        raise _RuleViolation(
            RejectionCode.PROTECTED,
            "is important, often reinforced, about safety, an anti-pattern, or requires permission",
        )
    if pruned_count >= snapshot.prune_quota:
        raise _RuleViolation(
            RejectionCode.OVER_QUOTA, f"a run prunes at most one in {PRUNE_ONE_IN} of a scope's memories"
        )


def is_protected(memory: Memory) -> bool:
    """Tell whether a memory is never archived without a successor."""
    return (
        memory.importance >= PROTECTED_IMPORTANCE
        or memory.reinforcement_count >= PROTECTED_REINFORCEMENT
        or is_anti_pattern(memory.category, memory.tags)
        or merge.needs_permission(memory)
        or is_below(SAFETY, memory.category)
    )


def _rejection(error: _RuleViolation, kind: str, ids: Sequence[str], index: int | None = None) -> Rejection:
    return Rejection(error.code, item_reference(kind, ids, index), str(error))
