"""TR4: what code sees of statements in doubt: it may be wrong often, if few wrong statements pass."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from services.commands.mining_evaluation import read_conversation
from shared.dreams.passes.fact_statements import statement_of
from shared.dreams.verification.fact_check import check
from shared.dreams.verification.fact_plan import ProposedFact
from shared.verification.claim import Evidence
from shared.verification.signs import Sign, SignFinder
from tests.unit.enrichment.rewritings import SENSIBLE, WRONG
from tests.unit.mining.labelled import Json, labelled_facts, proposed
from tests.unit.verification.said import signs_of


@pytest.mark.parametrize(
    ("sign", "said", "statement"),
    [
        (Sign.ADDED, "I own boats.", "The user owns 3 boats."),
        (Sign.ADDED, "Ich habe ein Boot.", "Der Nutzer hat ein Boot aus Kiel."),
        (Sign.ADDED, "The exam is tomorrow.", "The user's exam is on 2026-03-25."),
        (Sign.NEGATION, "I don't eat fish.", "The user eats fish."),
        (Sign.NEGATION, "Je ne mange pas de poisson.", "L'utilisateur mange du poisson."),
        (Sign.NEGATION, "I'm allergic to penicillin.", "The user is not allergic to penicillin."),
        (Sign.SUBJECT, "My brother eats fish.", "The user eats fish."),
        (Sign.SUBJECT, "Mein Bruder isst Fisch.", "Der Nutzer isst Fisch."),
        (Sign.SUBJECT, "My sister is no longer allergic to nuts.", "The user is no longer allergic to nuts."),
        (Sign.SUBJECT, "Ada pays 50 EUR and Ben pays 20 EUR.", "Ben pays 50 EUR."),
        (Sign.OTHER_WORDS, "I'm visiting Odense.", "The user lives in Odense."),
        (Sign.OTHER_WORDS, "我打算搬到北京。", "用户搬到北京。"),
        (Sign.CONDITION, "I'd move to Rome.", "The user moves to Rome."),
        (Sign.CONDITION, "Vielleicht ziehe ich nach Rom.", "Der Nutzer zieht nach Rom."),
        (Sign.CONDITION, "Si gano, compro un barco.", "El usuario compra un barco."),
        (Sign.PLAN, "I want to move to Rome.", "The user moves to Rome."),
        (Sign.PLAN, "Ich möchte nach Rom ziehen.", "Der Nutzer zieht nach Rom."),
        (Sign.REPORT, "I heard Mara lives in Rome.", "Mara lives in Rome."),
        (Sign.REPORT, "Secondo Mara, il server usa Debian.", "Il server usa Debian."),
        (Sign.REPORT, "听说王伟住在北京。", "王伟住在北京。"),
        (Sign.JOKE, "I own a railway, haha.", "The user owns a railway."),
        (Sign.JOKE, "Ich besitze eine Bahn, nur ein Scherz.", "Der Nutzer besitzt eine Bahn."),
        (Sign.PAST, "I used to smoke cigars.", "The user smokes cigars."),
        (Sign.PAST, "Antes fumaba puros.", "El usuario fuma puros."),
        (Sign.QUESTION, "Do I like Rome?", "The user likes Rome."),
        (Sign.QUESTION, "Mag ich Rom?", "Der Nutzer mag Rom."),
    ],
)
def test_what_was_said_otherwise_has_the_sign_of_it(sign: Sign, said: str, statement: str) -> None:
    assert sign in signs_of(statement, said)


@pytest.mark.parametrize(
    ("said", "statement"),
    [
        ("I own 3 boats.", "The user owns 3 boats."),
        ("The exam is tomorrow.", "The user's exam is on 2026-03-05."),
        ("I'm no longer allergic to penicillin.", "The user is no longer allergic to penicillin."),
        ("I have no allergies.", "The user has no allergies."),
        ("I stopped drinking coffee.", "The user stopped drinking coffee."),
        ("I'm vegetarian, but my partner Luca doesn't eat tomatoes.", "The user is vegetarian."),
        ("My brother eats fish.", "The user's brother eats fish."),
        ("Ada pays 50 EUR and Ben pays 20 EUR.", "Ben pays 20 EUR."),
        ("Mara lives in Rome.", "Mara lives in Rome."),
        ("I moved to Rome.", "The user moved to Rome."),
        ("I'd move to Rome.", "The user would move to Rome."),
        ("Vielleicht ziehe ich nach Rom.", "Der Nutzer zieht vielleicht nach Rom."),
        ("I want to move to Rome.", "The user wants to move to Rome."),
        ("I used to smoke cigars.", "The user used to smoke cigars."),
        ("Antes fumaba puros.", "El usuario antes fumaba puros."),
        ("J'habite Rome.", "L'utilisateur habite Rome."),
        ("Moro em Lisboa.", "O utilizador mora em Lisboa."),
    ],
)
def test_the_same_said_in_the_third_person_has_none(said: str, statement: str) -> None:
    assert signs_of(statement, said) == set()


@pytest.mark.parametrize(
    ("said", "statement"),
    [
        ("I'm visiting the coast.", "The user no longer lives in the hills."),
        ("I'm allergic to penicillin.", "The user is no longer allergic to penicillin."),
        ("I'm no longer allergic to penicillin.", "The user is allergic to penicillin."),
        ("I'm not allergic to penicillin.", "The user is allergic to penicillin."),
        ("Ich bin gegen Nüsse allergisch.", "Der Nutzer ist nicht mehr allergisch gegen Nüsse."),
        ("I stopped drinking coffee.", "The user drinks coffee."),
        ("I hate coffee.", "The user no longer hates coffee."),
        ("I don't hate coffee.", "The user hates coffee."),
        ("My partner Luca doesn't eat tomatoes.", "Luca eats tomatoes."),
        ("I eat tomatoes.", "The user doesn't eat tomatoes."),
        ("My flat is unfurnished.", "The user's flat is furnished."),
    ],
)
def test_a_statement_that_turns_round_what_was_said_is_held(said: str, statement: str) -> None:
    assert signs_of(statement, said)


@pytest.mark.parametrize(
    ("question", "answer", "statement", "is_held"),
    [
        ("I think you love Lake Constance.", "No, not at all.", "The user loves Lake Constance.", True),
        ("You live in Berlin, right?", "Wrong!", "The user lives in Berlin.", True),
        ("Are you a vegetarian?", "Nein.", "The user is a vegetarian.", True),
        ("Are you a vegetarian?", "不是", "The user is a vegetarian.", True),
        ("You live in Berlin, right?", "No, in Munich.", "The user lives in Munich.", False),
        ("You live in Berlin, right?", "No, in Munich.", "The user lives in Berlin.", True),
        ("You bake in Berlin, right?", "No, I bake in Munich.", "The user bakes in Berlin.", True),
        ("You live in Berlin, right?", "No, never in Munich.", "The user lives in Munich.", True),
        ("Do you bake with rye?", "No, I bake with spelt now.", "The user no longer bakes with yeast.", True),
    ],
)
def test_an_answer_that_denies_says_only_what_it_says_itself(
    question: str, answer: str, statement: str, *, is_held: bool
) -> None:
    assert bool(signs_of(statement, f"a: {question}", answer)) is is_held


def test_what_only_an_assistant_said_is_held() -> None:
    assert signs_of("The user lives in Aarhus.", "a: You live in Aarhus.") == {Sign.OTHER_WORDS}


def _with_other_number(item: ProposedFact) -> ProposedFact | None:
    content = re.sub(r"(?<![\w-])(\d[\d,.:]*\d|\d)(?![\w-])", "7919", item.content, count=1)
    return None if content == item.content else replace(item, content=content)


def _with_foreign_name(item: ProposedFact) -> ProposedFact:
    return replace(item, content=f"{item.content.rstrip('.')} with Xanthippe.")


def _signs_of_fact(talk: Json, item: ProposedFact) -> set[Sign]:
    shown = read_conversation(talk)
    [fact] = check([item], shown).facts
    statement = statement_of(fact, shown)
    return SignFinder().of_statement(statement.text, statement.evidence, statement.context)


@pytest.mark.parametrize("spoil", [_with_other_number, _with_foreign_name])
def test_each_spoilt_labelled_fact_is_held(spoil: Callable[[ProposedFact], ProposedFact | None]) -> None:
    spoilt = [(talk, spoil(proposed(talk, item))) for talk, item in labelled_facts()]
    facts = [(talk, item) for talk, item in spoilt if item is not None]
    assert len(facts) > 50
    assert [item.content for talk, item in facts if not _signs_of_fact(talk, item)] == []


MIN_STORED_FACTS = 67
"""Of the 208 labelled facts, as counted: the others are said in more or other words, or are plans."""


def test_a_third_of_the_labelled_facts_is_stored_without_a_judge() -> None:
    stored = [item for talk, item in labelled_facts() if not _signs_of_fact(talk, proposed(talk, item))]
    assert len(stored) >= MIN_STORED_FACTS


def _is_retold(note: str, text: str) -> bool:
    return not SignFinder().of_retelling(text, [Evidence("note", "2026-03-01", note)], ())


UNNOTICED = {"a password in small letters", "a name changed", "a weekday changed"}
"""Case and the end of a word make no difference; the weekday is that on which the note was written."""
MIN_RETOLD = 123
"""Of the 210 statements of the sensible rewritings, as counted."""


def test_a_rewriting_that_adds_denies_or_swaps_something_is_held() -> None:
    wrong = {name: rewriting for name, rewriting in WRONG.items() if "lost" not in name}
    assert len(wrong) >= 30
    unnoticed = {name for name, (note, texts) in wrong.items() if all(_is_retold(note, t) for t in texts)}
    assert unnoticed <= UNNOTICED


def test_most_sensible_statements_of_a_note_are_stored_without_a_judge() -> None:
    retold = [text for note, texts in SENSIBLE.values() for text in texts if _is_retold(note, text)]
    assert len(retold) >= MIN_RETOLD


@pytest.mark.parametrize(
    ("sign", "note", "text"),
    [
        (Sign.ADDED, "The team is small.", "The team has 5 people."),
        (Sign.ADDED, "Die Wohnung ist klein.", "Die Wohnung in Kiel ist klein."),
        (Sign.NEGATION, "Ada doesn't eat meat.", "Ada eats meat."),
        (Sign.SUBJECT, "Kiel closes at 18:00, Cologne at 18:30.", "Kiel closes at 18:30."),
        (Sign.PLAN, "Ada plans to move to Kiel.", "Ada moves to Kiel."),
        (Sign.CONDITION, "Wenn Ada gewinnt, feiert sie in Kiel.", "Ada gewinnt und feiert in Kiel."),
        (Sign.OTHER_WORDS, "Ada keeps bees.", "Ada runs a bakery in the old town."),
    ],
)
def test_a_retelling_in_doubt_has_a_sign(sign: Sign, note: str, text: str) -> None:
    assert sign in SignFinder().of_retelling(text, [Evidence("note", "2026-03-01", note)], ())


def test_what_labels_say_is_not_added() -> None:
    evidence = [Evidence("note", "2026-03-01", "The dog sleeps at 22:00.")]
    text = "The dog Rex sleeps at 22:00."
    assert SignFinder().of_retelling(text, evidence, ["dogs/Rex"]) == set()
    assert Sign.ADDED in SignFinder().of_retelling(text, evidence, ["dogs"])
