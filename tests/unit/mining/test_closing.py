"""CV5: what health, money or an account depends on is closed by no sentence; what was said stands beside."""

from datetime import timedelta
from typing import Any

import pytest

from shared.dreams.verification.fact_check import check
from shared.dreams.verification.fact_plan import Relation
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation.sensitive_topics import is_about_health
from shared.memory.longterm.safety import is_safety_matter as must_stay_open
from tests.unit.dreams.builders import memory
from tests.unit.mining.conversations import SAID_AT, about, code, conversation, fact

BEFORE = SAID_AT - timedelta(days=1)
HEALTH = """
The user is allergic to penicillin
Takes 5 mg of Ramipril, prescribed for her blood pressure
Type 1 diabetes
Der Nutzer verträgt keine Laktose
Gegen Nüsse allergisch
Nimmt morgens ihre Medikamente
Ist an Asthma erkrankt
Allergique aux arachides
Prend ses médicaments le soir
Est enceinte de six mois
Es alérgica a los mariscos
Toma una medicina para el corazón
È allergico alle noci
Prende un farmaco per la pressione alta
É alérgica a amendoim
Toma remédio para diabetes
Is allergisch voor noten
Slikt medicijnen
Är allergisk mot nötter
Аллергия на орехи
Принимает лекарства
对青霉素过敏
每天吃药
ペニシリンにアレルギーがある
毎朝薬を飲む
땅콩 알레르기가 있다
لديه حساسية من البنسلين
אלרגי לפניצילין
पेनिसिलिन से एलर्जी है
""".strip().splitlines()
HARMLESS = """
The user lives in Aarhus
Studies the arts in Leiden
Likes tea without sugar
Wohnt in Kiel und arbeitet am Hafen
Habite à Lyon avec deux chats
Vive en Sevilla
Woont in Utrecht
Живёт в Риге
住在北京市
名古屋に住んでいる
부산에서 예약을 했다
""".strip().splitlines()


@pytest.mark.parametrize("text", HEALTH)
def test_health_is_recognised_in_the_languages_that_loci_knows(text: str) -> None:
    assert is_about_health(text)
    assert must_stay_open(memory(1, text))


@pytest.mark.parametrize("text", HARMLESS)
def test_an_ordinary_fact_may_be_closed(text: str) -> None:
    assert not must_stay_open(memory(1, text, importance=0.79, reinforcement_count=2))


@pytest.mark.parametrize(
    "fields",
    [
        {"importance": 0.8},
        {"reinforcement_count": 3},
        {"category": "safety/food"},
        {"category": "Safety"},
        {"category": "user/health_notes"},
        {"tags": ["food", "allergies"]},
        {"tags": ["auto_pay"]},
        {"content": "The user pays 40 EUR a month"},
        {"content": "The user's password hint is his cat"},
    ],
)
def test_what_matters_stays_open_and_the_fact_is_stored_beside_it(fields: dict[str, Any]) -> None:
    values = {"content": "The user lives in Aarhus."} | fields
    known = memory(1, values.pop("content"), occurred_at=BEFORE, **values)
    talk = conversation("u: I'm visiting Odense.", known=(known,))
    checked = check([about("The user is visiting Odense.", Relation.CHANGED)], talk)
    [stored] = checked.facts
    assert (stored.relation, stored.of) == (Relation.NEW, None)
    [rejection] = checked.rejections
    assert rejection.code is RejectionCode.PROTECTED
    assert rejection.item == {"kind": "closing", "ids": [known.id], "index": 0}


def test_a_sentence_about_the_sister_leaves_the_users_allergy_open() -> None:
    known = memory(1, "The user is allergic to penicillin.", occurred_at=BEFORE, importance=0.9)
    talk = conversation("u: My sister is no longer allergic to penicillin.", known=(known,))
    content = "The user is no longer allergic to penicillin."
    checked = check([about(content, Relation.CHANGED)], talk)
    assert [stored.of for stored in checked.facts] == [None]
    assert code(checked) is RejectionCode.PROTECTED


def test_a_fact_beside_what_stays_open_passes_its_own_checks_and_may_name_what_that_names() -> None:
    known = memory(1, "The user takes 5 mg of Ramipril.", occurred_at=BEFORE)
    talk = conversation("u: I take 10 mg of it now.", known=(known,))
    assert check([about("The user takes 10 mg of Ramipril.", Relation.CHANGED)], talk).facts
    invented = check([about("The user takes 20 mg of Ramipril.", Relation.CHANGED)], talk)
    assert (invented.facts, code(invented)) == ((), RejectionCode.ADDS_SPECIFICS)
    older = memory(1, "The user takes 5 mg of Ramipril.", occurred_at=SAID_AT + timedelta(days=1))
    late = conversation("u: I take 10 mg of it now.", known=(older,))
    assert check([about("The user takes 10 mg of Ramipril.", Relation.CHANGED)], late).facts
    same = conversation("u: I take 5 mg of Ramipril.", known=(known,))
    assert code(check([about(known.content, Relation.CHANGED)], same)) is RejectionCode.UNCHANGED


@pytest.mark.parametrize(
    ("said", "content", "is_stored"),
    [
        ("I'm visiting the coast.", "The user no longer lives in the hills.", False),
        ("I don't live in Aarhus anymore.", "The user no longer lives in Aarhus.", True),
        ("I'm allergic to penicillin.", "The user is no longer allergic to penicillin.", False),
        ("I'm allergic to penicillin.", "The user is not allergic to penicillin.", False),
        ("I'm no longer allergic to penicillin.", "The user is no longer allergic to penicillin.", True),
        ("I'm no longer allergic to penicillin.", "The user is allergic to penicillin.", False),
        ("I'm not allergic to penicillin.", "The user is allergic to penicillin.", False),
        ("I have no allergies.", "The user has no allergies.", True),
        ("I can't eat nuts because I'm allergic.", "The user is allergic to nuts.", True),
        ("No nuts for me, I'm allergic.", "The user is allergic to nuts.", True),
        ("Ich bin gegen Nüsse allergisch.", "Der Nutzer ist nicht mehr allergisch gegen Nüsse.", False),
        ("I stopped drinking coffee.", "The user no longer drinks coffee.", True),
        ("I stopped drinking coffee.", "The user stopped drinking coffee.", True),
        ("I stopped drinking coffee.", "The user drinks coffee.", False),
        ("We stopped at the harbour.", "The user was at the harbour.", True),
        ("I hate coffee.", "The user no longer hates coffee.", False),
        ("I don't hate coffee.", "The user hates coffee.", False),
    ],
)
def test_that_something_has_ended_is_a_denial_as_any_other(
    said: str, content: str, *, is_stored: bool
) -> None:
    checked = check([fact(content, 1)], conversation(f"u: {said}"))
    assert code(checked) is (None if is_stored else RejectionCode.CHANGES_NEGATION)


def test_no_denies_what_was_asked() -> None:
    talk = conversation("u: Hello.", "a: Do you bake with rye?", "u: No, I bake with spelt now.")
    ended = fact("The user bakes with spelt and no longer with rye.", 2, 3)
    assert check([ended], talk).facts
    other = fact("The user bakes with spelt and no longer with yeast.", 2, 3)
    assert code(check([other], talk)) is RejectionCode.CHANGES_NEGATION
