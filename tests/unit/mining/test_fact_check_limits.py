"""CV5: facts at the very limits of the rules, and turns of more than one session."""

from datetime import timedelta

from shared.dreams.verification.fact_check import MAX_FACT, ShownConversation, check
from shared.dreams.verification.fact_plan import Relation
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation.roles import Role
from tests.unit.dreams.builders import memory
from tests.unit.mining.labelled import turn_of
from tests.unit.mining.test_fact_check import SAID_AT, about, code, conversation, fact


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
    said = turn_of("first", 1, "You have the Family plan.", Role.ASSISTANT, SAID_AT)
    answer = turn_of("second", 2, "Right.", Role.USER, SAID_AT)
    shown = ShownConversation({("first", 1): said, ("second", 2): answer}, {})
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
