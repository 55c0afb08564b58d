"""The facts that a model proposes after reading turns, as data that nothing has checked yet.

`parse` is lenient, because a plan alone changes nothing. Every item that the model wrote stays an item of
the plan, even one without content or sources, so that `fact_check` can accept or reject each of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from shared.dreams.verification import labels
from shared.dreams.verification.plan import storable, to_list, to_unit_interval
from shared.foundation import errors, model_output, validation

MAX_FACTS = 200
"""Facts of one answer. A part of a conversation has no more: a model that writes more is repeating itself."""
TurnKey = tuple[str, int]
"""The (session id, sequence number) of a turn."""


class Relation(StrEnum):
    """What a fact is to a memory that the model was shown."""

    NEW = "new"
    SAME = "same"  # the memory says it already
    CHANGED = "changed"  # the memory was right until now


@dataclass(frozen=True, slots=True)
class ProposedFact:
    """A fact as the model wrote it. `relation` is None if the model wrote none that is known.

    `of_id` names the memory that the fact repeats or replaces; `sources` are the turns that say it, and
    `quotes` the words in which they do.
    """

    content: str
    category: str | None
    tags: tuple[str, ...]
    importance: float | None
    occurred_at: datetime | None
    relation: Relation | None
    of_id: str | None
    sources: tuple[TurnKey, ...]
    quotes: tuple[str, ...] = ()


def parse(reply: str) -> list[ProposedFact]:
    """Parse `{facts: [{content, category, tags, importance?, occurredAt?, relation, of?, sources, …}]}`.

    Raises errors.InvalidModelReply if the reply has no list of facts, or too many of them.
    """
    items = model_output.parse_listed_objects(reply, "facts")
    if len(items) > MAX_FACTS:
        raise errors.InvalidModelReply(f"{len(items)} facts in a part of a conversation")
    return [_parse_fact(item) for item in items]


def _parse_fact(item: Mapping[str, Any]) -> ProposedFact:
    content = item.get("content")
    return ProposedFact(
        content=content.strip() if isinstance(content, str) else "",
        category=validation.sanitize_category(_text(item.get("category"))),
        tags=labels.sanitize_tags(to_list(item.get("tags"))),
        importance=to_unit_interval(item.get("importance")),
        occurred_at=_parse_time(item.get("occurredAt") or item.get("occurred_at")),
        relation=_parse_relation(item.get("relation")),
        of_id=_parse_id(item.get("of")),
        sources=tuple(dict.fromkeys(_parse_sources(item.get("sources")))),
        quotes=_parse_quotes(item.get("quotes")),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _parse_time(value: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
        return moment and validation.check_time(moment, "occurredAt")
    except (ValueError, errors.Invalid):
        return None


def _parse_relation(value: Any) -> Relation | None:
    """Return the relation, `new` for none at all, and None for a word that is no relation."""
    if value is None:
        return Relation.NEW
    word = value.strip().lower() if isinstance(value, str) else ""
    return Relation(word) if word in set(Relation) else None


def _parse_id(value: Any) -> str | None:
    # Memories are shown as `[ID:…]`, and some models return the whole label.
    return (
        value.strip(" []\t\n").lower().removeprefix("id:").strip() or None if isinstance(value, str) else None
    )


def _parse_sources(value: Any) -> list[TurnKey]:
    """Return the turns that are written as [session id, number]; what is written otherwise names none."""
    if not isinstance(value, list):
        return []
    if len(value) == 2 and isinstance(value[0], str):  # a single source without its list
        value = [value]
    return [(item[0], item[1]) for item in value if _is_turn_key(item)]


def _parse_quotes(value: Any) -> tuple[str, ...]:
    """Return the quotes of a fact; one without its list is one quote, and an empty one is none."""
    values = value if isinstance(value, list) else [value]
    return tuple(quote for quote in values if isinstance(quote, str) and quote.strip())


def _is_turn_key(item: Any) -> bool:
    return (
        isinstance(item, list)
        and len(item) == 2
        and isinstance(item[0], str)
        and isinstance(item[1], int)
        and not isinstance(item[1], bool)
    )


def as_json(facts: list[ProposedFact]) -> list[dict[str, Any]]:
    """Return the facts in the model's own format, with texts that can be stored."""
    return [
        {
            "content": storable(fact.content),
            "category": fact.category,
            "tags": list(fact.tags),
            "importance": fact.importance,
            "occurredAt": fact.occurred_at and fact.occurred_at.isoformat(),
            "relation": fact.relation,
            "of": fact.of_id and storable(fact.of_id),
            "quotes": [storable(quote) for quote in fact.quotes],
            "sources": [[storable(session_id), seq] for session_id, seq in fact.sources],
        }
        for fact in facts
    ]
