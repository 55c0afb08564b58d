"""CV5: which facts that a model proposes are stored, rule by rule and over the labelled conversations."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from services.commands.mining_evaluation import read_conversation
from shared.dreams.verification.fact_check import check
from shared.dreams.verification.fact_plan import ProposedFact, Relation
from shared.dreams.verification.rejection import RejectionCode
from shared.memory.longterm.labels import PERMISSION
from shared.memory.longterm.memory import Memory
from tests.unit.dreams.builders import archived_memory, memory
from tests.unit.mining.conversations import LIVES, SAID_AT, about, code, conversation, fact
from tests.unit.mining.labelled import conversations, labelled_facts, proposed

MAX_REFUSED = 2
"""Of the labelled facts: a wish in other words than its negation, and an address denied to somebody."""


def test_the_labelled_facts_are_stored() -> None:
    refused = [
        item["content"]
        for talk, item in labelled_facts()
        if not check([proposed(talk, item)], read_conversation(talk)).facts
    ]
    assert len(refused) <= MAX_REFUSED, refused


def _with_other_number(item: ProposedFact) -> ProposedFact | None:
    content = re.sub(r"(?<![\w-])(\d[\d,.:]*\d|\d)(?![\w-])", "7919", item.content, count=1)
    return None if content == item.content else replace(item, content=content)


def _with_foreign_name(item: ProposedFact) -> ProposedFact:
    return replace(item, content=f"{item.content.rstrip('.')} with Xanthippe.")


def _with_foreign_source(item: ProposedFact) -> ProposedFact:
    return replace(item, sources=(*item.sources, ("elsewhere", 1)))


def _without_sources(item: ProposedFact) -> ProposedFact:
    return replace(item, sources=())


@pytest.mark.parametrize(
    "spoil", [_with_other_number, _with_foreign_name, _with_foreign_source, _without_sources]
)
def test_no_spoilt_labelled_fact_is_stored(spoil: Callable[[ProposedFact], ProposedFact | None]) -> None:
    spoilt = [(talk, spoil(proposed(talk, item))) for talk, item in labelled_facts()]
    plans = [(talk, item) for talk, item in spoilt if item is not None]
    assert len(plans) > 50
    assert [item.content for talk, item in plans if check([item], read_conversation(talk)).facts] == []


def test_what_only_an_assistant_said_is_not_stored() -> None:
    for talk in conversations():
        for item in talk["none"]:
            lines = [talk["turns"][seq - 1] for seq in item["sources"]]
            if all(line.startswith("a: ") for line in lines):
                text = {"content": lines[0][3:], "sources": item["sources"]}
                assert (
                    code(check([proposed(talk, text)], read_conversation(talk))) is RejectionCode.UNCONFIRMED
                )


def test_what_an_assistant_said_is_stored_with_the_turn_that_confirms_it() -> None:
    talk = conversation("u: What is my plan?", "a: The Family plan.", "u: Right.", "a: Renewed.", "u: Fine.")
    said = "The user has the Family plan."
    assert check([fact(said, 2, 3)], talk).facts
    assert code(check([fact(said, 2)], talk)) is RejectionCode.UNCONFIRMED
    assert code(check([fact(said, 2, 5)], talk)) is RejectionCode.UNCONFIRMED
    assert code(check([fact(said, 1, 2)], talk)) is RejectionCode.UNCONFIRMED


def test_a_system_turn_states_no_fact() -> None:
    assert code(check([fact("Ada likes tea.", 1)], conversation("s: Ada likes tea."))) is (
        RejectionCode.UNCONFIRMED
    )


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("My partner Luca doesn't eat tomatoes.", "Luca eats tomatoes."),
        ("I eat tomatoes.", "The user doesn't eat tomatoes."),
        ("My flat is unfurnished.", "The user's flat is furnished."),
    ],
)
def test_a_fact_does_not_turn_what_was_said_round(said: str, content: str) -> None:
    assert code(check([fact(content, 1)], conversation(f"u: {said}"))) is RejectionCode.CHANGES_NEGATION


def test_a_part_of_a_turn_may_leave_its_denials_out() -> None:
    talk = conversation("u: I'm vegetarian, but my partner Luca doesn't eat tomatoes.")
    assert check([fact("The user is vegetarian.", 1)], talk).facts


def test_a_fact_says_of_nobody_what_was_said_of_another() -> None:
    talk = conversation("u: Ada pays 50 EUR and Ben pays 20 EUR.")
    assert check([fact("Ben pays 20 EUR.", 1)], talk).facts
    assert code(check([fact("Ben pays 50 EUR.", 1)], talk)) is RejectionCode.SWAPS_SPECIFICS


def test_days_are_counted_from_the_turn() -> None:
    talk = conversation("u: The exam is tomorrow.")
    assert check([fact("The user's exam is on 2026-03-05.", 1)], talk).facts
    assert code(check([fact("The user's exam is on 2026-03-25.", 1)], talk)) is RejectionCode.ADDS_SPECIFICS


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (" … ", RejectionCode.BLANK),
        ("tea " * 251, RejectionCode.TOO_LONG),
        ("tea \x00", RejectionCode.UNSTORABLE),
    ],
)
def test_a_content_that_is_no_sentence_is_refused(content: str, expected: RejectionCode) -> None:
    assert code(check([fact(content, 1)], conversation("u: I like tea."))) is expected


def test_a_changed_fact_names_the_memory_that_it_replaces() -> None:
    talk = conversation("u: We're moving to Odense.", known=(LIVES,))
    [accepted] = check([about("The user moves from Aarhus to Odense.", Relation.CHANGED)], talk).facts
    assert (accepted.of, accepted.relation, accepted.occurred_at) == (LIVES, Relation.CHANGED, SAID_AT)


@pytest.mark.parametrize(
    ("known", "content", "expected"),
    [
        (LIVES, "Jonas likes boats.", RejectionCode.UNRELATED),
        (LIVES, "the user lives in aarhus.", RejectionCode.UNCHANGED),
        (
            LIVES.model_copy(update={"occurred_at": SAID_AT + timedelta(days=1)}),
            "The user moves from Aarhus to Odense.",
            RejectionCode.OUTDATED,
        ),
        (
            LIVES.model_copy(update={"valid_from": SAID_AT + timedelta(days=1)}),
            "The user moves from Aarhus to Odense.",
            RejectionCode.OUTDATED,
        ),
        (LIVES.model_copy(update={"category": "active-plans/x"}), "Aarhus it is.", RejectionCode.PROTECTED),
        (LIVES.model_copy(update={"tags": ["anti-pattern"]}), "Aarhus it is.", RejectionCode.PROTECTED),
        (
            LIVES.model_copy(update={"metadata": {PERMISSION: "true"}}),
            "Aarhus it is.",
            RejectionCode.PROTECTED,
        ),
        (archived_memory(1, "The user lives in Aarhus."), "Aarhus it is.", RejectionCode.NOT_LIVE),
        (memory(2, "The user lives in Aarhus."), "Aarhus it is.", RejectionCode.UNKNOWN_ID),
    ],
)
def test_a_memory_is_not_replaced_by_what_does_not_replace_it(
    known: Memory, content: str, expected: RejectionCode
) -> None:
    talk = conversation("u: Jonas likes boats, we move to Odense.", known=(known,))
    assert code(check([about(content, Relation.CHANGED)], talk)) is expected


def test_a_memory_is_replaced_once() -> None:
    talk = conversation("u: We move from Aarhus to Odense.", known=(LIVES,))
    item = about("The user moves from Aarhus to Odense.", Relation.CHANGED)
    checked = check([item, item], talk)
    assert (len(checked.facts), code(checked)) == (1, RejectionCode.SOURCE_TAKEN)


def test_a_repeated_fact_says_no_more_than_the_memory() -> None:
    talk = conversation("u: As you know I live in Aarhus with Mette.", known=(LIVES,))
    assert check([about("The user lives in Aarhus.", Relation.SAME)], talk).facts
    more = about("The user lives in Aarhus with Mette.", Relation.SAME)
    assert code(check([more], talk)) is RejectionCode.ADDS_SPECIFICS


def test_an_unknown_relation_is_refused() -> None:
    talk = conversation("u: I like tea.")
    assert code(check([fact("The user likes tea.", 1, relation=None)], talk)) is RejectionCode.MALFORMED


def test_a_fact_is_not_later_than_the_turns_that_say_it() -> None:
    talk = conversation("u: I like tea.")
    before, after = SAID_AT - timedelta(days=9), SAID_AT + timedelta(days=9)
    [first] = check([fact("The user likes tea.", 1, occurred_at=before)], talk).facts
    [second] = check([fact("The user likes tea.", 1, occurred_at=after)], talk).facts
    assert (first.occurred_at, second.occurred_at) == (before, SAID_AT)


def test_a_fact_that_has_the_text_of_a_memory_repeats_it() -> None:
    talk = conversation("u: I live in Aarhus.", known=(LIVES,))
    [accepted] = check([fact("The user lives in  aarhus.", 1)], talk).facts
    assert (accepted.of, accepted.relation) == (LIVES, Relation.SAME)


def test_turns_that_were_mined_before_tell_a_fact_only_with_others() -> None:
    talk = conversation("u: I live here.", "a: In Aarhus, then?", "u: Yes.")
    read = replace(talk, earlier=frozenset({("talk", 1), ("talk", 2)}))
    said = "The user lives in Aarhus."
    assert check([fact(said, 2, 3)], talk).facts
    assert check([fact(said, 2, 3)], read).facts
    assert code(check([fact("The user lives here.", 1)], read)) is RejectionCode.READ_BEFORE
