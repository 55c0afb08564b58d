"""The labels of the notes: each holds for its own note, and a lost word is noticed."""

import re

import pytest

from tests.model import labels
from tests.model.labels import LabelledNote

NOTES = labels.read()


def test_there_are_fifty_notes_in_many_languages() -> None:
    assert len(NOTES) == len({note.content for note in NOTES}) == 50
    assert sum(len(note.keeps) for note in NOTES) > 200


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.id)
def test_a_note_has_what_must_not_be_lost_of_it(note: LabelledNote) -> None:
    assert note.missing_in(note.content) == []


@pytest.mark.parametrize("note", [note for note in NOTES if note.keeps], ids=lambda note: note.id)
def test_every_number_of_a_note_is_labelled_and_missed_when_it_is_changed(note: LabelledNote) -> None:
    for number in re.findall(r"\d{2,}", note.content):
        changed = note.content.replace(number, "7" * len(number) if set(number) != {"7"} else "1")
        assert note.missing_in(changed), number
    assert note.missing_in("") == list(note.keeps)
