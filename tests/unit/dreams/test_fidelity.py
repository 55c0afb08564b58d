"""DR4: a merge keeps what can't be guessed again. Tables of merges that must be accepted and rejected."""

# ruff: noqa: RUF001 (texts of other scripts, and dashes, are the point)

from datetime import UTC, datetime

import pytest

from shared.dreams.verification import fidelity
from shared.dreams.verification.rejection import RejectionCode
from shared.memory.longterm.memory import Memory
from tests.unit.dreams.builders import memory

FAITHFUL = [
    (["User prefers short answers", "Prefers concise, short replies"], "User prefers short, concise replies"),
    (["Anna likes tea.", "Anna enjoys tea"], "Anna likes and enjoys tea"),
    (["Prefers tea.", "Prefer tea in the morning"], "The user prefers tea in the morning"),
    (
        ["Bo is allergic to nuts.", "Bo can't eat hazelnuts, carries an EpiPen."],
        "Bo is allergic to nuts, hazelnuts among them, and carries an EpiPen.",
    ),
    (
        ["Lives at Hauptstr. 5", "Moved to Lindenweg 7 in 2025"],
        "Since 2025 lives at Lindenweg 7; before, at Hauptstr. 5",
    ),
    (["Nutzer mag keine Pilze", "Der Nutzer isst keine Pilze"], "Der Nutzer mag und isst keine Pilze"),
    (["Uses Docker 24.0.5 on port 8080", "Docker runs on port 8080"], "Uses Docker 24.0.5, on port 8080"),
    (["User dislikes mushrooms", "User does not like mushrooms"], "User does not like mushrooms"),
    (["Budget is $1,000 per month", "Monthly budget: 1000 USD"], "Monthly budget is $1000 per month"),
    (["Needs 4 200 pallets", "4,200 pallets are needed"], "4200 pallets are needed"),
    (["Meets on 2026-05-01 at 2pm", "Meets May 1, 2026 at 14:00"], "Meets on 1 May 2026 at 14:00"),
    (["Termin am 01.05.2026", "Termin: 1. Mai 2026"], "Termin am 2026-05-01"),
    (["Run `make test` before a push", "Always runs make test"], "Always run make test before a push"),
    (["Has 3 children"], "Has three children"),
    (["Has two cats", "Has 2 cats"], "Has 2 cats"),
    (["Runs 5 km", "Runs 6 km"], "Runs between 5 and 6 km"),
    (["Uses 10GB of memory", "Uses 10 GB"], "Uses 10 GB of memory"),
    (["Owes 5 percent", "Owes 5%"], "Owes 5 %"),
    (["Works with Anna's team", "Works with Anna"], "Works with Anna"),
    (["Calls APIs of Stripe", "Calls the API of Stripe"], "Calls APIs of Stripe"),
    (["Lives in the U.S. now", "Lives in the US"], "Now lives in the US"),
    (["Ada no longer lives in Bergen", "Ada lives in Oslo"], "Ada lives in Oslo, no longer in Bergen"),
    (["Ada lives in Bergen", "Ada moved to Oslo"], "Ada moved to Oslo and no longer lives in Bergen"),
    (["NEVER DEPLOY ON FRIDAYS, PLEASE"], "Please never deploy on Fridays"),
    (
        ["Wohnt in Köln, arbeitet bei der Stadt", "Arbeitet bei der Stadt"],
        "Wohnt in Köln, arbeitet bei der Stadt",
    ),
    (
        ["L’utilisateur préfère le café noir", "Aime le café noir"],
        "L'utilisateur préfère et aime le café noir",
    ),
    (["用户住在北京市，喜欢喝茶", "用户喜欢喝茶"], "用户住在北京市，喜欢喝茶"),
    (["ユーザーは田中さんとコーヒーを飲む"], "田中さんとコーヒーを飲むユーザー"),
    (["Said “ship it on Monday”", 'Said "ship it on Monday" again'], 'Said "ship it on Monday" again'),
    (["How To Use The Printer", "how to use the printer"], "How to use the printer"),
]

SPECIFICS_LOST = [
    # names
    (["Anna likes tea.", "Bob likes tea"], "Bob likes tea", "Anna"),
    (["The printer of Anna Schmidt is broken"], "Anna's printer is broken", "Schmidt"),
    (["Lives in Turkey"], "Lives with a turkey", "Turkey"),
    (["Flies with O'Brien"], "Flies with a friend", "Brien"),
    (["Works for Smith-Jones"], "Works for Smith", "Jones"),
    (["Живёт с Анной в Риге"], "Живёт в Риге", "Анной"),
    (["Знает Иванова"], "Знает Иванов", "Иванова"),
    (["Μένει στην Αθήνα"], "Μένει στην πόλη", "Αθήνα"),
    (["New York is home"], "York is home", "New"),
    (["Wants plan B for the move"], "Wants a plan for the move", "B"),
    (["用户住在北京市，喜欢喝茶"], "用户喜欢喝茶", "北京市"),
    (["田中さんはコーヒーが好き"], "田中さんが好き", "コーヒー"),
    # names in scripts without capitals, which look like any other word
    (["王丽和张伟住在杭州"], "王丽和她丈夫住在杭州", "张"),
    (["민지와 서준은 아침에 커피를 마신다"], "민지는 아침에 커피를 마신다", "서준은"),
    (["سلمى وخالد يعملان في دبي"], "سلمى تعمل في دبي", "وخالد"),
    (["สมชายกับมาลีอยู่เชียงใหม่"], "มาลีอยู่เชียงใหม่", "สมชา"),
    # acronyms
    (["Asks IT for access"], "Asks for access to it", "IT"),
    (["Reports to WHO"], "Reports to someone who asks", "WHO"),
    (["Calls two APIs of the bank"], "Calls two services of the bank", "APIs"),
    # numbers, units, money
    (["Has 15 chairs"], "Has 5 chairs", "15"),
    (["Has 5 chairs"], "Has 15 chairs", "5"),
    (["Pays 5 EUR for lunch"], "Pays $5 for lunch", "5"),
    (["Pays $5 for lunch"], "Pays 5 for lunch", "5"),
    (["Walks 5 km to work"], "Walks 5 miles to work", "5"),
    (["Takes 16 % of it"], "Takes 16 of it", "16"),
    (["Weighs 3.5 kg"], "Weighs 35 kg", "3.5"),
    (["It is -5 °C in the shed"], "It is 5 °C in the shed", "5"),
    (["Uses Python 3.10"], "Uses Python 3.1", "3.10"),
    (["Has three children"], "Has children", "three"),
    (["Eats two times a day"], "Eats every day", "two"),
    (["Scored 1/2 on the test"], "Scored 1 on the test", "1/2"),
    # moments
    (["Leaves on 2026-05-01"], "Leaves on 2026-05-02", "2026-05-01"),
    (["Leaves on May 1, 2026"], "Leaves in May 2026", "May 1, 2026"),
    (["Starts at 14:30"], "Starts at 2pm", "14:30"),
    (["Starts at 2pm"], "Starts at 2 am", "2pm"),
    (["Meets on Monday"], "Meets weekly", "Monday"),
    # addresses, code
    (["See https://a.example/b/c"], "See https://a.example/b", "https://a.example/b/c"),
    (["See https://a.example/b"], "See https://a.example/b/c", "https://a.example/b"),
    (["Mail ada@mail.example"], "Mail bada@mail.example", "ada@mail.example"),
    (["Logs go to /var/log/loci.log"], "Logs go to /var/log", "/var/log/loci.log"),
    (["Set max_open_files high"], "Set open files high", "max_open_files"),
    (["Calls getUserName first"], "Calls the user name first", "getUserName"),
    (["Writes C# at work"], "Writes C at work", "C#"),
    (["Uses the GPT-4o model"], "Uses the GPT-4 model", "GPT-4o"),
    (["Deploys v1.2.3-rc1 there"], "Deploys v1.2.3 there", "v1.2.3-rc1"),
    (["Runs Node.js there"], "Runs a node there", "Node.js"),
    (["Posts to #general daily"], "Posts to general channels daily", "#general"),
    (["Runs `rm -rf build` first"], "Runs rm on the build first", "rm -rf build"),
    (["Host 10.0.0.1 answers"], "Host 10.0.0.12 answers", "10.0.0.1"),
    # quotations
    (['Said "ship it on friday"'], "Said to ship on a friday", "ship it on friday"),
    (["Sagte „so nicht“ dazu"], "Sagte dazu nicht so viel", "so nicht"),
]  # fmt: skip

NEGATION_CHANGED = [
    (
        ["The user is allergic to penicillin", "The user saw a doctor"],
        "The user saw a doctor and is no longer allergic to penicillin",
    ),
    (["The user is allergic to penicillin"], "The user is not allergic to penicillin"),
    (["The user is not allergic to nuts"], "The user is allergic to nuts"),
    (["Takes ibuprofen", "Moved to Oslo"], "Moved to Oslo, no longer takes ibuprofen"),
    (["The user doesn't like tea"], "The user likes tea"),
    (["The user likes tea"], "The user doesn't like tea"),
    (["Never deploy in the evening", "Deploys in the morning"], "Deploy in the evening and in the morning"),
    (["Doesn't like tea", "Doesn't like fish"], "Doesn't like tea; likes fish"),
    (["Doesn't like tea", "Doesn't like fish"], "Doesn't like tea but likes fish"),
    (["Doesn't eat nuts", "Doesn't eat fish"], "Doesn't eat nuts; eats fish"),
    (["Never call the user", "Never email the user"], "Never call the user; email the user"),
    (["Drinks coffee without sugar"], "Drinks coffee with sugar"),
    (["Avoids gluten where possible"], "Eats gluten where possible"),
    (["Mag keine langen Antworten"], "Mag lange Antworten"),
    (["N'aime pas les réunions longues"], "Aime les réunions longues"),
    (["Nunca come carne roja"], "Come carne roja"),
    (["Не ест грибы совсем"], "Ест грибы совсем"),
    (["用户不喜欢喝茶"], "用户喜欢喝茶"),
    (["The tests are allowed to fail"], "The tests are not allowed to fail"),
]

GIST_LOST = [
    (["Anna likes tea", "Anna lives in Berlin"], "Anna lives in Berlin"),
    (["Has to water plants on the balcony each summer evening"], "Has plants"),
    (["Keeps spare keys in the blue drawer", "Works in a choir"], "Keeps spare keys in the blue drawer"),
]

SPECIFICS_ADDED = [
    (["Prefers dark mode"], "Prefers dark mode since 2019", "2019"),
    (["Lives in Oslo"], "Lives in Oslo with Ada", "Ada"),
    (["Has a bank account"], "Has a bank account, DE89", "DE89"),
    (["Reads the docs"], "Reads the docs at https://evil.example/x", "https://evil.example/x"),
]


def sources(texts: list[str]) -> list[Memory]:
    return [memory(number, text) for number, text in enumerate(texts)]


@pytest.mark.parametrize(("texts", "merged"), FAITHFUL)
def test_a_faithful_merge_passes(texts: list[str], merged: str) -> None:
    assert fidelity.lost_content(merged, sources(texts)) is None


@pytest.mark.parametrize(("texts", "merged", "word"), SPECIFICS_LOST)
def test_a_merge_that_loses_a_specific_is_rejected_with_the_lost_word(
    texts: list[str], merged: str, word: str
) -> None:
    fault = fidelity.lost_content(merged, sources(texts))
    assert fault is not None
    assert fault.code is RejectionCode.LOSES_SPECIFICS
    assert word in fault.words


@pytest.mark.parametrize(("texts", "merged"), GIST_LOST)
def test_a_merge_that_drops_an_unrelated_fact_is_rejected(texts: list[str], merged: str) -> None:
    fault = fidelity.lost_content(merged, sources(texts))
    assert fault is not None
    assert fault.code is RejectionCode.LOSES_GIST


def test_days_on_which_the_sources_happened_must_be_named_if_they_differ() -> None:
    first = memory(1, "Ran along the river", occurred_at=datetime(2026, 5, 1, 8, tzinfo=UTC))
    second = memory(2, "Ran along the river", occurred_at=datetime(2026, 5, 3, 8, tzinfo=UTC))
    fault = fidelity.lost_content("Ran along the river", [first, second])
    assert fault is not None
    assert fault.words == ("2026-05-01", "2026-05-03")
    assert fidelity.lost_content("Ran along the river on 2026-05-01 and 3 May 2026", [first, second]) is None
    assert fidelity.lost_content("Ran along the river", [first, memory(3, "Ran along the river")]) is None


def test_any_text_is_faithful_to_itself() -> None:
    for texts, merged in FAITHFUL:
        for text in (*texts, merged):
            assert fidelity.lost_content(text, sources([text])) is None
