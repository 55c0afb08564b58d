"""EN4: of the labelled notes, no name, number, date or negation can be left out or replaced unnoticed."""

# ruff: noqa: RUF001  (letters and signs of other scripts are the point)

import re

import pytest

from shared.language import unmarked_words
from tests.model import labels
from tests.model.labels import LabelledNote
from tests.unit.context import builders
from workers.enrichment import faithful, negators

NOTES = {note.id: note for note in labels.read() if note.keeps}
# A name in lower case looks like any other word of a language with capitals. Of two negations of one verb
# ("n'aime pas") one still denies it.
UNNOTICED = {
    "n18": {"ramipril", "simvastatin"},
    "n23": {"kestrel", "merlin", "vendor/|vendor"},
    "n32": {"pas|ne|n'|not"},
}


@pytest.mark.parametrize("id_", NOTES)
@pytest.mark.parametrize("replacement", ["", "it"])
def test_what_is_labelled_is_missed_when_it_is_gone(id_: str, replacement: str) -> None:
    note = NOTES[id_]
    unnoticed = {
        wordings
        for wordings in note.keeps
        if (rewriting := without(note, wordings, replacement)) and not has_fault(note, rewriting)
    }
    assert unnoticed == UNNOTICED.get(id_, set())


def without(note: LabelledNote, wordings: str, replacement: str) -> str | None:
    """Return the note without what is labelled; None if it has it elsewhere, too."""
    wording = next(wording for wording in wordings.split("|") if labels.contains(note.content, wording))
    text = " ".join(re.sub(labels.pattern(wording), replacement, note.content, flags=re.IGNORECASE).split())
    return text if note.missing_in(text) else None


def has_fault(note: LabelledNote, rewriting: str) -> bool:
    raw_memory = builders.entry("0123456789ab", note.content)
    return faithful.first_fault([rewriting], note.content, raw_memory) is not None


@pytest.mark.parametrize("note", NOTES.values(), ids=list(NOTES))
def test_a_note_as_it_was_written_has_no_fault(note: LabelledNote) -> None:
    assert not has_fault(note, note.content)


@pytest.mark.parametrize(
    ("note", "rewriting", "lost"),
    [
        ("민지는 부산에서 일한다.", "민지가 부산으로 출근하며 일한다.", []),
        ("민지는 부산에서 일한다.", "그는 부산에서 일한다.", ["민지는"]),
        ("سلمى تعمل في دبي", "تعمل سلمى في دبي", []),
        ("سلمى تعمل في دبي", "تعمل ليلى في دبي", ["سلمى"]),
        ("דנה גרה בחיפה", "היא גרה בחיפה", ["דנה"]),
        ("रोहन पुणे में है", "वह पुणे में है", ["रोहन"]),
        ("王丽住在杭州。", "用户住在杭州。", ["王", "丽"]),
        ("王丽住在杭州。", "王莉住在杭州。", ["丽"]),
        ("我叫王伟，不吃辣。", "用户叫王伟，他不吃辣。", []),
        ("สมชายอยู่เชียงใหม่", "สมชายอยู่เชียงใหม่ครับ", []),
        ("Anna wohnt in Kiel.", "Sie wohnt dort.", []),
    ],
)
def test_words_of_scripts_without_capitals_come_back(note: str, rewriting: str, lost: list[str]) -> None:
    assert unmarked_words.lost_words(note, rewriting) == lost


def test_a_thai_name_that_is_gone_is_missed() -> None:
    assert unmarked_words.lost_words("สมชายอยู่เชียงใหม่", "เขาอยู่เชียงใหม่")


@pytest.mark.parametrize(
    ("note", "rewriting", "lost"),
    [
        ("Never restart db-1 without Priya.", "Restart db-1 without Priya.", ["never"]),
        ("Jonas ist gegen Nüsse allergisch, Mette nicht.", "Jonas und Mette sind allergisch.", ["nicht"]),
        ("I don't like tea.", "The user dislikes tea.", []),
        ("She doesn't drink.", "She never drinks.", []),
        ("Ο Νίκος δεν καπνίζει.", "Ο Νίκος καπνίζει.", ["δεν"]),
        ("Ring at no. 12.", "Ring at number 12.", []),
        ("她不喝酒。", "她喝酒。", ["不"]),
    ],
)
def test_the_last_negation_of_a_note_comes_back(note: str, rewriting: str, lost: list[str]) -> None:
    assert negators.lost_negators(note, rewriting) == lost
