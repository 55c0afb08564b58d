"""Entities that a model compares: groups of those that look alike, and what is said of them."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from shared.dreams.verification import graph_review_check
from shared.foundation import prompt_size
from shared.foundation.prompt_safety import single_line
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.memory.graph import entity_queries, names, review_queries
from shared.memory.graph.entity import Entity
from shared.memory.graph.triple import Triple

MAX_GROUP = 8
_WIDTH = 10
"""Names of one form, and triples of one entity, that are looked at."""
_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class EntityGroup:
    """Entities that look alike, or one alone, with the triples of which they are the subjects."""

    entities: list[Entity]
    triples: list[Triple]


async def load(tx: Transaction, scope: Scope, ids: Sequence[str]) -> list[EntityGroup]:
    """Return the groups of these entities in which there is something to decide.

    That is in a group of several entities, or with an entity of which one predicate says several things.
    """
    entities = await entity_queries.list_by_ids(tx, ids)
    forms = [(entity.id, form) for entity in entities.values() for form in _forms(entity)]
    pairs = await review_queries.list_alike(tx, scope, forms, _WIDTH)
    others = await entity_queries.list_by_ids(tx, [other for _, other in pairs])
    known = others | entities
    alike = [
        (known[id_], known[other_id])
        for id_, other_id in pairs
        if other_id in known and graph_review_check.are_alike(known[id_], known[other_id])
    ]
    grouped = _grouped(list(entities.values()), alike)
    subjects = sorted({entity.id for group in grouped for entity in group})
    said = defaultdict(list)
    for triple in await review_queries.list_said(tx, scope, subjects, _WIDTH):
        said[triple.subject_id].append(triple)
    groups = [
        EntityGroup(group, [triple for entity in group for triple in said[entity.id]]) for group in grouped
    ]
    return [group for group in groups if len(group.entities) > 1 or _has_rivals(group.triples)]


def _forms(entity: Entity) -> Iterable[str]:
    """Return the names of an entity, and runs of their words, as names are compared."""
    forms: dict[str, None] = {}
    for name in entity.names:
        folded = names.fold(name)
        spaced = names.fold(_CAMEL_CASE.sub(" ", name))
        forms |= dict.fromkeys([folded, spaced, folded.replace(" ", "")])
        forms |= dict.fromkeys(names.possible_keys(folded.split()))
    return [form for form in forms if len(form) >= names.MIN_LETTERS]


def _grouped(entities: Sequence[Entity], alike: Iterable[tuple[Entity, Entity]]) -> list[list[Entity]]:
    """Return the entities with those that look like them, each entity in one group alone."""
    by_id: dict[str, list[Entity]] = defaultdict(list)
    for entity, other in alike:
        by_id[entity.id].append(other)
    seen: set[str] = set()
    groups: list[list[Entity]] = []
    for entity in entities:
        if entity.id in seen:
            continue
        group = [entity, *(other for other in by_id[entity.id] if other.id not in seen)][:MAX_GROUP]
        seen |= {member.id for member in group}
        groups.append(group)
    return groups


def _has_rivals(triples: Collection[Triple]) -> bool:
    """Return whether of one subject two triples have one predicate, or one object, and a dream wrote some."""
    said = [(triple.subject_id, triple.predicate) for triple in triples]
    objects = [(triple.subject_id, triple.object_id or names.fold(triple.object)) for triple in triples]
    has_double = len(set(said)) < len(said) or len(set(objects)) < len(objects)
    return has_double and any(triple.is_derived for triple in triples)


@dataclass(slots=True)
class GroupsPrompt:
    """Lines of a prompt, and what they show: entities and triples by the labels that they have there."""

    max_tokens: int
    lines: list[str] = field(default_factory=list)
    entities: dict[str, Entity] = field(default_factory=dict)
    triples: dict[str, Triple] = field(default_factory=dict)
    tokens: int = 0

    @property
    def text(self) -> str:
        """The prompt."""
        return "\n".join(self.lines)

    def add(self, line: str) -> bool:
        """Add a line if it fits, and return whether it did: what is not shown has no label."""
        tokens = prompt_size.tokens_of(line)
        if self.tokens + tokens > self.max_tokens:
            return False
        self.tokens += tokens
        self.lines.append(line)
        return True


def show(groups: Sequence[EntityGroup], max_tokens: int) -> GroupsPrompt:
    """Return groups as a prompt of at most so many tokens."""
    prompt = GroupsPrompt(max_tokens)
    for number, group in enumerate(groups, start=1):
        prompt.add(f"Group {number}:")
        for entity in group.entities:
            label = f"e{len(prompt.entities) + 1}"
            if not prompt.add(_entity_line(label, entity)):
                return prompt
            prompt.entities[label] = entity
            for triple in group.triples:
                label = f"t{len(prompt.triples) + 1}"
                if triple.subject_id == entity.id and prompt.add(_triple_line(label, triple)):
                    prompt.triples[label] = triple
    return prompt


def _entity_line(label: str, entity: Entity) -> str:
    aliases = f" (aliases: {', '.join(entity.aliases)})" if entity.aliases else ""
    return f"- [{label}] {entity.type}: {single_line(entity.name + aliases)}"


def _triple_line(label: str, triple: Triple) -> str:
    since = f"since {triple.valid_at:%Y-%m-%d}, " if triple.valid_at else ""
    return f"  - [{label}] {triple.line.removeprefix('- ')} {since}known {triple.created_at:%Y-%m-%d}"
