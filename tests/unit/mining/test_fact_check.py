"""CV5: which facts that a model proposes have the form of facts, rule by rule."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from services.commands.mining_evaluation import read_conversation
from shared.dreams.verification.fact_check import MAX_FACT, ShownConversation, check
from shared.dreams.verification.fact_plan import ProposedFact, Relation
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation.roles import Role
from shared.memory.longterm.labels import PERMISSION
from shared.memory.longterm.memory import Memory
from tests.unit.dreams.builders import archived_memory, memory
from tests.unit.mining.conversations import LIVES, SAID_AT, about, code, conversation, fact
from tests.unit.mining.labelled import conversations, labelled_facts, proposed, turn_of


def test_the_labelled_facts_have_the_form_of_facts() -> None:
    refused = [
        item["content"]
        for talk, item in labelled_facts()
        if not check([proposed(talk, item)], read_conversation(talk)).facts
    ]
    assert refused == []


def _with_foreign_source(item: ProposedFact) -> ProposedFact:
    return replace(item, sources=(*item.sources, ("elsewhere", 1)))


def _without_sources(item: ProposedFact) -> ProposedFact:
    return replace(item, sources=())


def _with_foreign_quote(item: ProposedFact) -> ProposedFact:
    return replace(item, quotes=("Xanthippe said so",))


@pytest.mark.parametrize("spoil", [_with_foreign_source, _without_sources, _with_foreign_quote])
def test_no_labelled_fact_without_its_sources_or_their_words_passes(
    spoil: Callable[[ProposedFact], ProposedFact],
) -> None:
    plans = [(talk, spoil(proposed(talk, item))) for talk, item in labelled_facts()]
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
    ("quotes", "expected"),
    [
        ((), None),
        (("we MOVE  to",), None),
        (("We move to Odense.", "then"), None),
        (("we moved to",), RejectionCode.MISQUOTED),
        (("we move to", "it rains"), RejectionCode.MISQUOTED),
        (("to Odense. In spring",), RejectionCode.MISQUOTED),
        (("…",), RejectionCode.MISQUOTED),
        (("",), RejectionCode.MISQUOTED),
    ],
)
def test_each_quote_stands_in_one_of_the_sources(
    quotes: tuple[str, ...], expected: RejectionCode | None
) -> None:
    talk = conversation("u: So  then,\nwe move to Odense.", "a: When?", "u: In spring.", "u: It rains.")
    item = fact("The user moves to Odense in spring.", 1, 3, quotes=quotes)
    assert code(check([item], talk)) is expected


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


def test_a_repeated_fact_that_says_more_than_the_memory_is_a_new_one() -> None:
    talk = conversation("u: As you know I live in Aarhus with Mette.", known=(LIVES,))
    for content, expected in (
        ("The user lives in Aarhus.", (Relation.SAME, LIVES)),
        ("The user lives in Aarhus with Mette.", (Relation.NEW, None)),
        ("The user does not live in Aarhus.", (Relation.NEW, None)),
        ("The user is allergic to peanuts.", (Relation.NEW, None)),
    ):
        [accepted] = check([about(content, Relation.SAME)], talk).facts
        assert (accepted.relation, accepted.of) == expected


def test_a_repeated_fact_may_say_what_the_category_of_the_memory_says() -> None:
    for category, relation in (("dogs/Rex", Relation.SAME), ("dogs", Relation.NEW)):
        talk = conversation("u: Rex is brown.", known=(memory(1, "The dog is brown.", category=category),))
        [accepted] = check([about("The dog Rex is brown.", Relation.SAME)], talk).facts
        assert accepted.relation is relation


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


def test_a_fact_has_at_most_a_thousand_characters() -> None:
    longest = "tea " * (MAX_FACT // 4)
    talk = conversation(f"u: {longest} and more")
    assert MAX_FACT == len(longest) == 1000
    assert check([fact(longest, 1)], talk).facts
    assert code(check([fact(f"{longest}s", 1)], talk)) is RejectionCode.TOO_LONG


def test_a_turn_of_another_session_confirms_nothing() -> None:
    offer = turn_of("first", 1, "You have the Family plan.", Role.ASSISTANT, SAID_AT)
    answer = turn_of("second", 2, "Right.", Role.USER, SAID_AT)
    shown = ShownConversation({("first", 1): offer, ("second", 2): answer}, {})
    item = fact("The user has the Family plan.", sources=(("first", 1), ("second", 2)))
    assert code(check([item], shown)) is RejectionCode.UNCONFIRMED


def test_a_memory_is_replaced_by_what_is_as_old_and_by_nothing_older() -> None:
    for age, refused in ((timedelta(0), None), (timedelta(seconds=1), RejectionCode.OUTDATED)):
        known = memory(1, "The user lives in Aarhus.", occurred_at=SAID_AT + age)
        talk = conversation("u: I live in Odense.", known=(known,))
        assert code(check([about("The user lives in Odense.", Relation.CHANGED)], talk)) is refused


def test_what_a_fact_says_is_for_a_judge_or_signs_to_decide() -> None:
    talk = conversation("u: I like tea.", known=(LIVES,))
    assert check([about("Jonas doesn't own 7 boats.", Relation.CHANGED)], talk).facts
