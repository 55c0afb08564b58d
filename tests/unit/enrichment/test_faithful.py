"""EN4: what is made of a note has every name, acronym, number, date and negation of it, and invents none."""

import pytest

from shared.dreams.verification.fidelity import Fault
from shared.dreams.verification.rejection import RejectionCode
from tests.unit.context import builders
from tests.unit.enrichment.rewritings import KIEL, SENSIBLE, WRONG
from workers.enrichment import faithful


def fault_of(note: str, contents: list[str], **fields: object) -> Fault | None:
    raw_memory = builders.entry("0123456789ab", note).model_copy(update=fields)
    return faithful.first_fault(contents, note, raw_memory)


def test_there_are_at_least_forty_sensible_rewritings() -> None:
    assert len(SENSIBLE) >= 40


@pytest.mark.parametrize("name", SENSIBLE)
def test_a_sensible_rewriting_is_accepted(name: str) -> None:
    assert fault_of(*SENSIBLE[name]) is None


@pytest.mark.parametrize("name", WRONG)
def test_a_rewriting_that_loses_or_invents_something_is_not(name: str) -> None:
    assert fault_of(*WRONG[name]) is not None


def test_the_fault_names_what_was_lost() -> None:
    fault = fault_of(KIEL, ["The office in Kiel closes at 18:00.", "The office in Köln closes at 18:30."])
    assert fault is not None
    assert (fault.code, fault.words) == (RejectionCode.LOSES_SPECIFICS, ("Cologne",))


def test_the_fault_names_what_was_invented() -> None:
    fault = fault_of("The sister of the user is a vet.", ["The user's sister Clara is a vet."])
    assert fault is not None
    assert (fault.code, fault.words) == (RejectionCode.ADDS_SPECIFICS, ("Clara",))


def test_the_fault_names_what_was_swapped() -> None:
    fault = fault_of(KIEL, ["The office in Kiel closes at 18:30.", "The office in Cologne closes at 18:00."])
    assert fault is not None
    assert fault.code is RejectionCode.SWAPS_SPECIFICS
    assert {"kiel", "18:30"} <= set(fault.words)


def test_what_the_labels_say_is_not_invented() -> None:
    contents = ["The user's dog Rex sleeps at 22:00 on 2026-02-28."]
    note = "Yesterday he slept at 22:00."
    assert fault_of(note, contents, tags=["Rex"], category="user/dog") is None
    assert fault_of(note, contents) is not None


def test_the_category_counts_as_a_label() -> None:
    contents = ["The user's dog Rex sleeps at 22:00."]
    assert fault_of("He sleeps at 22:00.", contents, category="dogs/Rex") is None
    assert fault_of("He sleeps at 22:00.", contents, category="dogs") is not None


@pytest.mark.parametrize(("note", "is_accepted"), [("Both cats sleep.", True), ("The cats sleep.", False)])
def test_both_are_two(note: str, *, is_accepted: bool) -> None:
    assert (fault_of(note, ["The two cats sleep."]) is None) == is_accepted


def test_tomorrow_is_counted_from_the_day_that_the_note_is_about() -> None:
    occurred_at = builders.NOON.replace(month=7, day=31)
    contents = ["The user meets Paula on 2026-08-01."]
    assert fault_of("I meet Paula tomorrow.", contents, occurred_at=occurred_at) is None
    assert fault_of("I meet Paula tomorrow.", contents) is not None


def test_nothing_may_be_made_of_a_part_with_nothing_to_lose() -> None:
    assert fault_of("Hello there. How are you?", []) is None
    assert fault_of("Ada moved to Oslo.", []) is not None


def test_a_number_of_the_memory_itself_is_not_invented() -> None:
    note = "Ada keeps bees. Bo keeps goats."
    assert fault_of(note, ["1. Ada keeps bees.", "2. Bo keeps goats."]) is None
    assert fault_of(note, ["Ada keeps bees. (one)", "Bo keeps goats (two)"]) is None
    assert fault_of(note, ["Ada keeps bees (hives)", "Bo keeps 2 goats"]) is not None


@pytest.mark.parametrize("number", ["7", "seven", "Seven"])
def test_the_number_of_a_memory_may_be_one_that_the_note_lacks(number: str) -> None:
    assert fault_of("Ada keeps bees.", [f"Ada keeps bees ({number})"]) is None


def test_a_word_in_brackets_at_the_end_is_no_number_of_the_memory() -> None:
    fault = fault_of("Ada keeps bees.", ["Ada keeps bees (NASA)"])
    assert fault is not None
    assert fault.words == ("NASA",)


def test_no_more_than_thirty_words_are_named() -> None:
    names = [f"item-{number}" for number in range(40)]
    fault = fault_of(f"Ada packs {', '.join(names)}.", ["Ada packs."])
    assert fault is not None
    assert fault.words == tuple(names[:30])


@pytest.mark.parametrize(("first", "is_accepted"), [("Op", False), ("Ope", True)])
def test_a_first_word_of_three_letters_may_be_the_beginning_of_a_word(
    first: str, *, is_accepted: bool
) -> None:
    assert (fault_of(f"{first} failed.", ["The operation failed."]) is None) == is_accepted


@pytest.mark.parametrize(
    ("note", "content", "is_accepted"),
    [
        ("Gym is Mon/Wed/Fri.", "The gym is on Mon, Wed and Fri.", True),
        ("Gym is Mon/Wed/Fri.", "The gym is on Mon and Wed.", False),
        ("The path is src/x1/main.", "The path is src and x1 and main.", False),
    ],
)
def test_only_a_compound_of_words_may_be_taken_apart(note: str, content: str, *, is_accepted: bool) -> None:
    assert (fault_of(note, [content]) is None) == is_accepted


@pytest.mark.parametrize(("count", "is_accepted"), [("two", True), ("three", False)])
def test_a_number_may_count_the_names_of_the_note(count: str, *, is_accepted: bool) -> None:
    fault = fault_of("Tim and Lea go to school.", [f"The {count} children Tim and Lea go to school."])
    assert (fault is None) == is_accepted
