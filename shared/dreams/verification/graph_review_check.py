"""Check what a model proposes about entities against what it was shown. All functions are pure.

Two entities are merged only if both were shown, and if a name of the one is a shorter or another way to write
a name of the other. A triple is invalidated only because of another one that was shown and says something
else, or the same, of the same subject. So the worst that a model can do is to join what looks alike.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shared.dreams.verification.graph_changes import EntityMerge, Expiry
from shared.dreams.verification.graph_review_plan import GraphReviewPlan, ProposedExpiry, ProposedMerge
from shared.dreams.verification.rejection import Rejection, RejectionCode
from shared.memory.graph import names
from shared.memory.graph.entity import Entity, EntityType
from shared.memory.graph.triple import Triple
from shared.search.text import tokenizer

CONTRADICTED, DUPLICATE = "contradicted", "duplicate"
_NEGATIONS = {"not", "no", "never", "non", "un", "ex", "former", "formerly", "previously"}
_CERTAIN = 0.7
"""A triple of this confidence yields to none of a lower one."""


@dataclass(frozen=True, slots=True)
class ShownGraph:
    """What a model was shown: entities by their labels (`e1`, …), and triples by theirs (`t1`, …)."""

    entities: Mapping[str, Entity]
    triples: Mapping[str, Triple]


@dataclass(slots=True)
class CheckedReview:
    """What was accepted and what was not. `taken` are the ids that an accepted item is about."""

    merges: list[EntityMerge] = field(default_factory=list)
    expiries: list[Expiry] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)


def check(plan: GraphReviewPlan, shown: ShownGraph) -> CheckedReview:
    """Return the items of a plan that hold, and why the others don't."""
    checked = CheckedReview()
    for index, merge in enumerate(plan.merges):
        _check_merge(checked, merge, shown, index)
    for index, expiry in enumerate(plan.expiries):
        _check_expiry(checked, expiry, shown, index)
    return checked


def _check_merge(checked: CheckedReview, merge: ProposedMerge, shown: ShownGraph, index: int) -> None:
    def reject(code: RejectionCode, detail: str) -> None:
        checked.rejections.append(Rejection(code, {"kind": "merge", "index": index}, detail))

    kept, dropped = shown.entities.get(merge.keep), shown.entities.get(merge.drop)
    if kept is None or dropped is None:
        reject(RejectionCode.UNKNOWN_ID, "an id was not shown")
    elif kept.id == dropped.id or {kept.id, dropped.id} & checked.taken:
        reject(RejectionCode.SOURCE_TAKEN, "an earlier item is about one of them")
    elif kept.scope != dropped.scope:
        reject(RejectionCode.CROSSES_USERS, "they belong to different users")
    elif kept.type is not dropped.type and EntityType.TOPIC not in {kept.type, dropped.type}:
        reject(RejectionCode.UNRELATED, "they are of different types")
    elif not are_alike(kept, dropped):
        reject(RejectionCode.UNRELATED, "no name of the one is another way to write a name of the other")
    elif _is_ambiguous(kept, dropped, shown.entities.values()):
        reject(RejectionCode.UNRELATED, "a third entity looks like one of them, and not like the other")
    else:
        checked.taken |= {kept.id, dropped.id}
        checked.merges.append(EntityMerge(kept.id, dropped.id))


def _is_ambiguous(kept: Entity, dropped: Entity, shown: Iterable[Entity]) -> bool:
    """Return whether "Alice" may be another one than "Alice Smith", because "Alice Jones" is there too."""
    others = [entity for entity in shown if entity.id not in {kept.id, dropped.id}]
    return any(are_alike(kept, other) != are_alike(dropped, other) for other in others)


def are_alike(one: Entity, other: Entity) -> bool:
    """Return whether a name of the one can be a shorter or another way to write a name of the other."""
    return any(
        _is_variant(first, second) or _is_variant(second, first)
        for first in _all_names(one)
        for second in _all_names(other)
    )


def _all_names(entity: Entity) -> Iterable[str]:
    return (names.fold(name) for name in entity.names)


def _is_variant(short: str, long: str) -> bool:
    """Return whether a folded name is another one, with or without spaces, parts of it, or its initials."""
    if short.replace(" ", "") == long.replace(" ", ""):
        return True
    short_words, long_words = short.split(), long.split()
    left_out = set(long_words) - set(short_words)
    has_number = any(character.isdigit() for word in left_out for character in word)
    is_part = set(short_words) <= set(long_words) and not has_number and names.key_of(short) is not None
    initials = "".join(word[0] for word in long_words)
    return is_part or (len(short_words) == 1 and len(short) >= names.MIN_LETTERS and short == initials)


def _check_expiry(checked: CheckedReview, expiry: ProposedExpiry, shown: ShownGraph, index: int) -> None:
    def reject(code: RejectionCode, detail: str) -> None:
        checked.rejections.append(Rejection(code, {"kind": "triple", "index": index}, detail))

    old, new = shown.triples.get(expiry.id), shown.triples.get(expiry.because_of)
    if old is None or new is None:
        reject(RejectionCode.UNKNOWN_ID, "an id was not shown")
    elif old.id == new.id or {old.id, new.id} & checked.taken:
        reject(RejectionCode.SOURCE_TAKEN, "an earlier item is about one of them")
    elif {old.subject_id, new.subject_id} & checked.taken:
        reject(RejectionCode.SOURCE_TAKEN, "their subject is merged in the same answer")
    elif not old.is_derived or (old.confidence >= _CERTAIN and new.confidence < old.confidence):
        reject(RejectionCode.PROTECTED, "a caller has said it, or it is the more certain one")
    elif old.subject_id != new.subject_id or not _are_comparable(expiry.reason, old, new):
        reject(RejectionCode.UNRELATED, "the other triple is no reason")
    elif expiry.reason == CONTRADICTED and not _is_newer(new, old):
        reject(RejectionCode.OUTDATED, "the other triple is not newer")
    else:
        checked.taken |= {old.id, new.id}
        at = new.valid_at if expiry.reason == CONTRADICTED else None
        checked.expiries.append(Expiry("triple", old.id, expiry.reason, new.id, at))


def _are_comparable(reason: str, old: Triple, new: Triple) -> bool:
    is_same_object = (old.object_id, names.fold(old.object)) == (new.object_id, names.fold(new.object))
    if reason == CONTRADICTED:
        return old.predicate == new.predicate and not is_same_object
    return reason == DUPLICATE and is_same_object and _say_the_same(old.predicate, new.predicate)


def _say_the_same(one: str, other: str) -> bool:
    """Return whether predicates have a word in common that is no grammar, and deny the same."""
    words = [set(predicate.split("_")) for predicate in (one, other)]
    first, second = (set(tokenizer.tokenize_query(predicate.replace("_", " "))) for predicate in (one, other))
    return bool(first & second) and words[0] & _NEGATIONS == words[1] & _NEGATIONS


def _is_newer(new: Triple, old: Triple) -> bool:
    """Return whether a triple began to hold after another one; if that is not known, was written after it."""
    if new.valid_at is not None and old.valid_at is not None:
        return new.valid_at > old.valid_at
    return new.created_at > old.created_at
