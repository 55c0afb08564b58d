"""CV5: what health, money or an account depends on is closed by no sign; what was said stands beside."""

from datetime import timedelta
from typing import Any

import pytest

from shared.dreams.passes.fact_statements import statement_of
from shared.dreams.verification.fact_check import ShownConversation, check
from shared.dreams.verification.fact_plan import ProposedFact, Relation
from shared.foundation.sensitive_topics import is_about_health
from shared.memory.longterm.safety import is_safety_matter
from shared.platform.spend.charge import Payer, Purpose
from shared.verification import decision
from shared.verification.decision import ClosingFate, Decision, Fate
from shared.verification.signs import Sign
from tests.unit.dreams.builders import memory
from tests.unit.mining.conversations import SAID_AT, about, conversation

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
    assert is_safety_matter(memory(1, text))


@pytest.mark.parametrize("text", HARMLESS)
def test_an_ordinary_fact_may_be_closed(text: str) -> None:
    assert not is_safety_matter(memory(1, text, importance=0.79, reinforcement_count=2))


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
async def test_without_a_judge_what_matters_stays_open_and_the_fact_is_stored_beside_it(
    fields: dict[str, Any],
) -> None:
    values = {"content": "The user lives in Aarhus."} | fields
    known = memory(1, values.pop("content"), occurred_at=BEFORE, **values)
    talk = conversation("u: I live in Odense.", known=(known,))
    [decided] = await decide(talk, about("The user lives in Odense.", Relation.CHANGED))
    assert (decided.fate, decided.closing) == (Fate.STORED, ClosingFate.HELD)
    assert decided.signs == (Sign.CLOSES_SAFETY_MATTER,)


async def test_without_a_judge_what_does_not_matter_is_closed_by_a_changed_value() -> None:
    known = memory(1, "The user studies arts in Aarhus.", occurred_at=BEFORE, importance=0.79)
    talk = conversation("u: I study arts in Odense.", known=(known,))
    [decided] = await decide(talk, about("The user studies arts in Odense.", Relation.CHANGED))
    assert decided.closing is ClosingFate.CLOSED


async def test_a_sentence_about_the_sister_is_held_and_leaves_the_users_allergy_open() -> None:
    known = memory(1, "The user is allergic to penicillin.", occurred_at=BEFORE, importance=0.9)
    talk = conversation("u: My sister is no longer allergic to penicillin.", known=(known,))
    content = "The user is no longer allergic to penicillin."
    [decided] = await decide(talk, about(content, Relation.CHANGED))
    assert (decided.fate, decided.closing) == (Fate.HELD, None)
    assert Sign.SUBJECT in decided.signs


async def decide(talk: ShownConversation, item: ProposedFact) -> list[Decision]:
    """Decide by signs about a fact that has the form of one."""
    statements = [statement_of(checked, talk) for checked in check([item], talk).facts]
    return await decision.decide(None, Payer("acme", "helper", "mira", Purpose.JUDGE), statements)
