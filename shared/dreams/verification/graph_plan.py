"""The entities and triples that a model proposes, as data that nothing has checked yet.

`parse` is lenient, because a plan alone changes nothing. Every item that the model wrote stays an item of
the plan, so that `graph_check` can accept or reject each of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.dreams.verification.plan import to_list, to_unit_interval
from shared.foundation import errors, model_output, validation

Source = tuple[str, int | None]
"""A turn as (session id, number), or a memory as (id, None)."""


@dataclass(frozen=True, slots=True)
class ProposedEntity:
    """An entity as the model wrote it. `label` is that of an entity that it was shown, or None."""

    label: str | None
    name: str
    type: str | None
    aliases: tuple[str, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class ProposedTriple:
    """A triple as the model wrote it; subject and object are labels or names, a literal is a text."""

    subject: str
    predicate: str
    object: str | None
    literal: str | None
    fact: str | None
    confidence: float | None
    valid_at: datetime | None
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """What a model found in a part of the conversation log, or in some facts."""

    entities: tuple[ProposedEntity, ...] = ()
    triples: tuple[ProposedTriple, ...] = ()


def parse(reply: str) -> GraphPlan:
    """Parse `{entities: [{id?, name, type, aliases, sources}], triples: [{subject, …, sources}]}`.

    Raises errors.InvalidModelReply if the reply has no such object.
    """
    payload = model_output.parse_object(reply, "entities", "triples")
    return GraphPlan(
        tuple(_parse_entity(item) for item in model_output.listed_objects(payload.get("entities"))),
        tuple(_parse_triple(item) for item in model_output.listed_objects(payload.get("triples"))),
    )


def _parse_entity(item: Mapping[str, Any]) -> ProposedEntity:
    return ProposedEntity(
        label=_text(item.get("id")),
        name=_text(item.get("name")) or "",
        type=_text(item.get("type")),
        aliases=tuple(alias.strip() for alias in to_list(item.get("aliases")) if isinstance(alias, str)),
        sources=_parse_sources(item),
    )


def _parse_triple(item: Mapping[str, Any]) -> ProposedTriple:
    return ProposedTriple(
        subject=_text(item.get("subject")) or "",
        predicate=_text(item.get("predicate")) or "",
        object=_text(item.get("object")),
        literal=_text(item.get("literal")),
        fact=_text(item.get("fact")),
        confidence=to_unit_interval(item.get("confidence")),
        valid_at=_parse_time(item.get("validAt")),
        sources=_parse_sources(item),
    )


def _text(value: Any) -> str | None:
    return (value.strip(" []") or None) if isinstance(value, str) else None


def _parse_time(value: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
        return moment and validation.check_time(moment, "validAt")
    except (ValueError, errors.Invalid):
        return None


def _parse_sources(item: Mapping[str, Any]) -> tuple[Source, ...]:
    """Return what is a pair of a session's id and a number, or the id of a memory alone."""
    found: list[Source] = []
    for source in to_list(item.get("sources")):
        values = source if isinstance(source, list) else [source]
        if not values or not isinstance(values[0], str):
            continue
        seq = values[1] if len(values) > 1 else None
        if isinstance(seq, str) and seq.isdecimal() and len(seq) < len(str(2**31)):
            seq = int(seq)
        is_number = isinstance(seq, int) and not isinstance(seq, bool)
        found.append((values[0].strip(" []").removeprefix("ID:"), seq if is_number else None))
    return tuple(found)
