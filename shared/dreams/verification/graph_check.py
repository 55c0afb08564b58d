"""Check what a model proposes for a graph against what it was shown. All functions are pure.

An item is accepted only if it names sources that were shown, and if every name in it occurs in their texts
or is that of an entity that was shown. A label that was not shown is refused with its item. So nothing comes
into a graph that nobody has said, whatever the model writes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.dreams.verification.graph_changes import ExtractedEntity, ExtractedTriple
from shared.dreams.verification.graph_plan import GraphPlan, ProposedEntity, ProposedTriple, Source
from shared.dreams.verification.rejection import Rejection, RejectionCode
from shared.foundation import errors
from shared.foundation.origin import Trust, least
from shared.memory.graph import names
from shared.memory.graph.entity import MAX_ALIASES, Entity, EntityDraft, parse_type
from shared.memory.graph.triple import DEFAULT_CONFIDENCE, TripleDraft, TripleSource
from shared.search.text import tokenizer

_LABEL = re.compile(r"e\d+")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model was shown: texts by source, and known entities by their labels (`e1`, `e2`, …).

    `trusts` are those of the sources; one that has none is trusted least.
    """

    texts: Mapping[Source, str]
    entities: Mapping[str, Entity] = field(default_factory=dict)
    trusts: Mapping[Source, Trust] = field(default_factory=dict)


@dataclass(slots=True)
class Checked:
    """What was accepted and what was not."""

    entities: list[ExtractedEntity] = field(default_factory=list)
    triples: list[ExtractedTriple] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)


def check(plan: GraphPlan, shown: Shown) -> Checked:
    """Return the items of a plan that hold, and why the others don't."""
    checked = Checked()
    for index, entity in enumerate(plan.entities):
        found = _check_entity(entity, shown, index)
        if isinstance(found, Rejection):
            checked.rejections.append(found)
        else:
            checked.entities.append(found)
    known = {names.fold(item.draft.name): item for item in checked.entities}
    for index, triple in enumerate(plan.triples):
        accepted = _check_triple(triple, shown, known, index)
        if isinstance(accepted, Rejection):
            checked.rejections.append(accepted)
        else:
            checked.triples.append(accepted)
    return checked


def _rejected(code: RejectionCode, kind: str, index: int, detail: str) -> Rejection:
    return Rejection(code, {"kind": kind, "index": index}, detail)


def _check_entity(proposed: ProposedEntity, shown: Shown, index: int) -> ExtractedEntity | Rejection:
    sources = _shown_sources(proposed.sources, shown)
    if not sources:
        return _rejected(RejectionCode.NO_SOURCES, "entity", index, "names no source that was shown")
    existing = None if proposed.label is None else shown.entities.get(proposed.label)
    if proposed.label is not None and existing is None:
        return _rejected(RejectionCode.UNKNOWN_ID, "entity", index, "its id was not shown")
    words = _words_of(sources, shown)
    name = proposed.name if existing is None else existing.name
    if existing is None and not names.occurs(names.fold(name), words):
        return _rejected(RejectionCode.ADDS_SPECIFICS, "entity", index, "its name is in none of its sources")
    said = [alias for alias in proposed.aliases if alias and names.occurs(names.fold(alias), words)]
    draft = EntityDraft(
        name=name,
        type=parse_type(proposed.type) if existing is None else None,
        aliases=tuple(said[:MAX_ALIASES]),
    )
    try:
        return ExtractedEntity(draft.validated(), _as_sources(sources))
    except errors.Invalid as error:
        return _rejected(RejectionCode.MALFORMED, "entity", index, str(error))


def _check_triple(
    proposed: ProposedTriple, shown: Shown, known: Mapping[str, ExtractedEntity], index: int
) -> ExtractedTriple | Rejection:
    sources = _shown_sources(proposed.sources, shown)
    if not sources:
        return _rejected(RejectionCode.NO_SOURCES, "triple", index, "names no source that was shown")
    words = _words_of(sources, shown)
    ends: dict[str, str | None] = {"object": None}
    for part in ("subject", "object") if proposed.object else ("subject",):
        end = _check_end(getattr(proposed, part), part, shown, {*known}, words, index)
        if isinstance(end, Rejection):
            return end
        ends[part] = end
    if proposed.literal and not proposed.object and not _occurs_in_parts(proposed.literal, words):
        return _rejected(
            RejectionCode.ADDS_SPECIFICS, "triple", index, "its literal is in none of its sources"
        )
    try:
        trust = least(shown.trusts.get(source, Trust.OUTSIDE) for source in sources)
        return ExtractedTriple(_draft(proposed, ends).validated(), _as_sources(sources), trust)
    except errors.Invalid as error:
        return _rejected(RejectionCode.MALFORMED, "triple", index, str(error))


def _check_end(
    end: str, part: str, shown: Shown, known: set[str], words: Sequence[str], index: int
) -> str | Rejection:
    """Return the name of the subject or the object of a triple, given by a label or a name."""
    if end in shown.entities:
        return shown.entities[end].name
    if _LABEL.fullmatch(end):
        return _rejected(RejectionCode.UNKNOWN_ID, "triple", index, f"the id of its {part} was not shown")
    if names.fold(end) in known or names.occurs(names.fold(end), words):
        return end
    return _rejected(RejectionCode.ADDS_SPECIFICS, "triple", index, f"its {part} is in none of its sources")


def _draft(proposed: ProposedTriple, ends: Mapping[str, str | None]) -> TripleDraft:
    return TripleDraft(
        subject=ends["subject"] or "",
        predicate=proposed.predicate,
        object=ends["object"],
        literal=None if ends["object"] else proposed.literal,
        fact=proposed.fact,
        confidence=DEFAULT_CONFIDENCE if proposed.confidence is None else proposed.confidence,
        valid_at=proposed.valid_at,
    )


def _shown_sources(proposed: Sequence[Source], shown: Shown) -> list[Source]:
    return [source for source in dict.fromkeys(proposed) if source in shown.texts]


def _words_of(sources: Sequence[Source], shown: Shown) -> list[str]:
    return [word for source in sources for word in [*tokenizer.words(shown.texts[source]), "…"]]


def _occurs_in_parts(literal: str, words: Sequence[str]) -> bool:
    """Return whether each word of a literal is somewhere in the texts: its wording may be another."""
    return set(tokenizer.words(literal)) <= set(words)


def _as_sources(sources: Sequence[Source]) -> tuple[TripleSource, ...]:
    return tuple(
        TripleSource(memory_id=id_) if seq is None else TripleSource(session_id=id_, seq=seq)
        for id_, seq in sources
    )
