"""DR11: nothing comes into a graph that nobody has said, whatever a model proposes."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.dreams.verification import graph_check, graph_plan
from shared.dreams.verification.graph_check import Checked, Shown
from shared.memory.graph.entity import Entity, EntityType
from shared.memory.graph.triple import DEFAULT_CONFIDENCE

SAID = [["talk", 1]]


def _known(name: str) -> Entity:
    return Entity.model_construct(
        id="the-id", name=name, type=EntityType.PERSON, aliases=[], metadata={}, created_at=datetime.now(UTC)
    )


SHOWN = Shown(
    {
        ("talk", 1): "Bo Chen leads Larkspur since May.",
        ("talk", 2): "She likes tea.",
        ("m1", None): "Bo is 40.",
    },
    {"e1": _known("Ada Lovelace")},
)


def check(*, entities: list[Any] | None = None, triples: list[Any] | None = None) -> Checked:
    reply = json.dumps({"entities": entities or [], "triples": triples or []})
    return graph_check.check(graph_plan.parse(reply), SHOWN)


def _triple(**fields: Any) -> dict[str, Any]:
    triple = {"subject": "Bo Chen", "predicate": "Leads", "object": "Larkspur", "sources": SAID}
    return {**triple, "confidence": 0.9, **fields}


def test_what_the_sources_say_is_accepted() -> None:
    entity = {"name": "Bo Chen", "type": "person", "aliases": ["Bo", "Robert"], "sources": SAID}
    checked = check(entities=[entity], triples=[_triple(), _triple(subject="e1", object="Bo Chen")])
    [accepted] = checked.entities
    assert (accepted.draft.type, accepted.draft.aliases) == (EntityType.PERSON, ("Bo",))
    first, second = checked.triples
    assert (first.draft.predicate, first.draft.confidence) == ("leads", 0.9)
    assert (first.sources[0].session_id, first.sources[0].seq) == ("talk", 1)
    assert second.draft.subject == "Ada Lovelace"
    assert checked.rejections == []


def test_an_entity_that_was_shown_keeps_its_name_and_type_and_gets_other_names() -> None:
    entity = {"id": "e1", "name": "Mallory", "type": "place", "aliases": ["Bo"], "sources": SAID}
    [accepted] = check(entities=[entity]).entities
    assert (accepted.draft.name, accepted.draft.type, accepted.draft.aliases) == (
        "Ada Lovelace",
        None,
        ("Bo",),
    )


def test_a_triple_may_name_an_entity_of_the_same_reply_that_another_source_names() -> None:
    triple = _triple(predicate="likes", object="tea", sources=[["talk", 2]])
    assert check(triples=[triple]).triples == []
    [accepted] = check(entities=[{"name": "Bo Chen", "sources": SAID}], triples=[triple]).triples
    assert accepted.draft.subject == "Bo Chen"


def test_a_triple_without_a_confidence_has_the_default_one_and_an_object_instead_of_a_literal() -> None:
    [accepted] = check(triples=[_triple(confidence=None, literal="a million euros")]).triples
    assert accepted.draft.confidence == DEFAULT_CONFIDENCE
    assert (accepted.draft.object, accepted.draft.literal) == ("Larkspur", None)


def test_a_fact_is_a_source_by_its_id_alone() -> None:
    triple = _triple(subject="Bo", predicate="age", object=None, literal="40", sources=[["m1"]])
    [accepted] = check(triples=[triple]).triples
    assert accepted.sources[0].memory_id == "m1"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"sources": []}, "no_sources"),
        ({"sources": [["talk", 9]]}, "no_sources"),
        ({"sources": [["other", 1]]}, "no_sources"),
        ({"subject": "e7"}, "unknown_id"),
        ({"object": "e2"}, "unknown_id"),
        ({"subject": "Mallory"}, "adds_specifics"),
        ({"object": "Larkspur", "sources": [["talk", 2]]}, "adds_specifics"),
        ({"object": None, "literal": "a million euros"}, "adds_specifics"),
        ({"predicate": "->"}, "malformed"),
        ({"object": None}, "malformed"),
        ({"fact": "x" * 3000}, "malformed"),
    ],
)
def test_a_triple_that_nobody_has_said_is_refused(fields: dict[str, Any], code: str) -> None:
    checked = check(triples=[_triple(**fields)])
    assert (checked.triples, [item.code for item in checked.rejections]) == ([], [code])


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"id": "e9", "name": "Bo Chen"}, "unknown_id"),
        ({"id": "00000000-0000-7000-8000-000000000000", "name": "Bo Chen"}, "unknown_id"),
        ({"name": "Mallory"}, "adds_specifics"),
        ({"name": "Bo Chen", "sources": "talk"}, "no_sources"),
        ({"name": ""}, "adds_specifics"),
    ],
)
def test_an_entity_that_nobody_has_named_is_refused(fields: dict[str, Any], code: str) -> None:
    checked = check(entities=[{"type": "Person", "sources": SAID, **fields}])
    assert (checked.entities, [item.code for item in checked.rejections]) == ([], [code])


def test_ten_thousand_aliases_are_cut_to_what_was_said() -> None:
    entity = {"name": "Larkspur", "aliases": [f"alias {n}" for n in range(10_000)], "sources": SAID}
    [accepted] = check(entities=[entity]).entities
    assert accepted.draft.aliases == ()


def test_whatever_a_model_writes_is_parsed() -> None:
    odd: list[Any] = [None, 1, "x", [], {"sources": [[None, 1], ["a", True], {"b": 1}]}, {"name": 3}]
    checked = check(entities=odd, triples=odd)
    assert (checked.entities, checked.triples) == ([], [])
