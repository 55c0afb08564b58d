"""CV5: facts at the very limits of the rules, and turns of more than one session."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.dreams.verification import said
from shared.dreams.verification.fact_check import MAX_FACT, ShownConversation, check
from shared.dreams.verification.fact_plan import Relation
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation.roles import Role
from shared.language.specifics import ParsedText
from shared.language.text_parser import parse_text
from tests.unit.dreams.builders import memory
from tests.unit.mining.conversations import SAID_AT, about, code, conversation, fact
from tests.unit.mining.labelled import turn_of


def test_a_fact_has_at_most_a_thousand_characters() -> None:
    longest = "tea " * (MAX_FACT // 4)
    talk = conversation(f"u: {longest} and more")
    assert MAX_FACT == len(longest) == 1000
    assert check([fact(longest, 1)], talk).facts
    assert code(check([fact(f"{longest}s", 1)], talk)) is RejectionCode.TOO_LONG


def test_no_more_than_thirty_invented_words_are_named() -> None:
    invented = [f"item-{number}" for number in range(40)]
    [rejection] = check(
        [fact(f"Ada packs {', '.join(invented)}.", 1)], conversation("u: Ada packs.")
    ).rejections
    assert rejection.words == tuple(invented[:30])


def test_a_turn_of_another_session_confirms_nothing() -> None:
    offer = turn_of("first", 1, "You have the Family plan.", Role.ASSISTANT, SAID_AT)
    answer = turn_of("second", 2, "Right.", Role.USER, SAID_AT)
    shown = ShownConversation({("first", 1): offer, ("second", 2): answer}, {})
    proposed = fact("The user has the Family plan.", sources=(("first", 1), ("second", 2)))
    assert code(check([proposed], shown)) is RejectionCode.UNCONFIRMED


def test_a_memory_is_replaced_by_what_is_as_old_and_by_nothing_older() -> None:
    content = "The user lives in Odense."
    for age, refused in ((timedelta(0), None), (timedelta(seconds=1), RejectionCode.OUTDATED)):
        known = memory(1, "The user lives in Aarhus.", occurred_at=SAID_AT + age)
        talk = conversation("u: I live in Odense.", known=(known,))
        assert code(check([about(content, Relation.CHANGED)], talk)) is refused


def test_a_repeated_fact_may_say_what_the_category_of_the_memory_says() -> None:
    for category, refused in (("dogs/Rex", None), ("dogs", RejectionCode.ADDS_SPECIFICS)):
        talk = conversation("u: Rex is brown.", known=(memory(1, "The dog is brown.", category=category),))
        assert code(check([about("The dog Rex is brown.", Relation.SAME)], talk)) is refused


def test_a_turn_is_read_once_however_many_facts_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may paste a document, and an answer may have a hundred facts of it."""
    texts: list[str] = []

    def parse_and_count(text: str) -> ParsedText:
        texts.append(text)
        return parse_text(text)

    monkeypatch.setattr(said, "parse_text", parse_and_count)
    talk = conversation("u: Ada has a cat and 2 dogs.", "a: Nice.", "u: Ben has a boat.")
    facts = [fact("Ada has a cat.", 1), fact("Ada has 2 dogs.", 1), fact("Ben has a boat.", 1, 3)]
    assert len(check(facts * 50, talk).facts) == 150
    assert sorted(filter(None, texts)) == ["Ada has a cat and 2 dogs.", "Ben has a boat."]


@pytest.mark.parametrize(
    ("question", "answer", "content", "is_stored"),
    [
        ("I think you love Lake Constance.", "No, not at all.", "The user loves Lake Constance.", False),
        ("You live in Berlin, right?", "Wrong!", "The user lives in Berlin.", False),
        ("Are you a vegetarian?", "Nein.", "The user is a vegetarian.", False),
        ("Are you a vegetarian?", "\u4e0d\u662f", "The user is a vegetarian.", False),
        ("You live in Berlin, right?", "No, in Munich.", "The user lives in Munich.", True),
        ("You live in Berlin, right?", "No, in Munich.", "The user lives in Berlin.", False),
        ("You bake in Berlin, right?", "No, I bake in Munich.", "The user bakes in Berlin.", False),
        ("You live in Berlin, right?", "No, never in Munich.", "The user lives in Munich.", None),
        ("Should I book Berlin?", "No problem!", "The user goes to Berlin.", True),
        ("You live in Berlin, right?", "Yes, no doubt.", "The user lives in Berlin.", True),
    ],
)
def test_an_answer_that_denies_confirms_only_what_it_says_itself(
    question: str, answer: str, content: str, *, is_stored: bool | None
) -> None:
    talk = conversation("u: Hello.", f"a: {question}", f"u: {answer}")
    codes = {True: None, False: RejectionCode.UNCONFIRMED, None: RejectionCode.CHANGES_NEGATION}
    assert code(check([fact(content, 2, 3)], talk)) is codes[is_stored]


def test_a_denied_repetition_reinforces_nothing_and_a_denied_past_may_be_replaced() -> None:
    known = memory(1, "The user bakes in Aarhus.", occurred_at=SAID_AT - timedelta(days=1))
    talk = conversation(
        "u: Hello.", "a: Do you bake in Aarhus?", "u: No, I bake in Odense now.", known=(known,)
    )
    same, changed = (
        fact(content, 2, 3, relation=relation, of_id=known.id)
        for content, relation in (
            ("The user bakes in Aarhus.", Relation.SAME),
            ("The user bakes in Odense and no longer in Aarhus.", Relation.CHANGED),
        )
    )
    assert code(check([same], talk)) is RejectionCode.UNCONFIRMED
    assert code(check([changed], talk)) is None


@pytest.mark.parametrize("year", [2, 9998])
def test_a_day_that_no_calendar_has_is_none(year: int) -> None:
    at = datetime(year, 1 if year == 2 else 12, 1 if year == 2 else 31, tzinfo=UTC)
    content = "I fly to Rome on Friday, in 999 weeks, 999 weeks ago, tomorrow, yesterday."
    turn = turn_of("talk", 1, content, Role.USER, at)
    shown = ShownConversation({("talk", 1): turn}, {})
    assert check([fact("The user flies to Rome.", 1)], shown).facts
