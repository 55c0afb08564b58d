"""A text that says of one name what its sources say of another is found; a mere rewording is not."""

import pytest

from shared.language import swaps
from shared.language.specifics import ParsedText
from shared.language.swaps import swapped_words
from shared.language.text_parser import parse_text

OFFICES = "The office in Kiel closes at 18:00, the one in Cologne at 18:30."
FLIGHT = "Flight LH 123 leaves Munich at 07:10 and lands in Oslo at 09:25."
AGES = "Anna, who is 30, has 2 kids, and Ben, who is 40, has none."
HOURS = "Kiel opens on Monday at 9:00 and on Tuesday at 10:00."


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (OFFICES, "Kiel closes at 18:30. Cologne closes at 18:00."),
        (FLIGHT, "Flight LH 123 leaves Oslo at 07:10 and lands in Munich at 09:25."),
        (AGES, "Ben is 30 and has none.\nAnna is 40 and has 2 kids."),
        (HOURS, "Kiel opens on Monday at 10:00.\nKiel opens on Tuesday at 9:00."),
        ("Ada was born on 2001-02-03, Ben on 1999-05-06.", "Ada was born on 1999-05-06."),
        ("Ada pays 50 EUR and Ben pays 20 EUR.", "Ben pays 50 EUR and Ada pays 20 EUR."),
        ("Server A1 has 16 GB, server B2 has 32 GB.", "Server A1 has 32 GB.\nServer B2 has 16 GB."),
        (
            "Ada met Ben on 2024-01-02 and Carl on 2024-01-05.",
            "Ada met Carl on 2024-01-02.\nAda met Ben on 2024-01-05.",
        ),
        (
            "Der Laden in Kiel schließt um 18:00, der in Köln um 18:30.",
            "Der Laden in Köln schließt um 18:00 und der in Kiel um 18:30.",
        ),
        ("At 18:00, Kiel closes, and Cologne at 18:30.", "At 18:30, Kiel closes, and Cologne at 18:00."),
        ("Ada, Ben's sister, pays 50 EUR and Ben pays 20 EUR.", "Ada pays 20 EUR and Ben pays 50 EUR."),
        ("Ada is 30, has 2 kids, and Ben is 40, has 3 kids.", "Ada has 3 kids. Ben has 2 kids."),
        ("Ada manages Ben.", "Ben managed Ada."),
        ("Kiel is bigger than Cologne.", "Cologne is bigger than Kiel."),
    ],
)
def test_what_is_said_of_another_name_is_found(source: str, text: str) -> None:
    assert swapped_words(text, [source])
    assert not swapped_words(source, [source])


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (OFFICES, "Kiel closes at 18:00. Cologne closes at 18:30."),
        (OFFICES, "Kiel and Cologne close at 18:00 and 18:30, respectively."),
        (OFFICES, "Kiel and Cologne close at 18:00 and 18:30."),
        (FLIGHT, "Flight LH 123 from Munich to Oslo leaves at 07:10 and lands at 09:25."),
        (FLIGHT, "Flight LH 123 leaves at 07:10 from Munich.\nLH 123 arrives in Oslo at 09:25."),
        (AGES, "Ben is 40 and has none.\nAnna is 30 and has 2 kids."),
        (HOURS, "Kiel opens at 10:00 on Tuesday.\nKiel opens at 9:00 on Monday."),
        ("We eat late, around nine, since Luca trains until eight.", "The user and Luca eat around nine."),
        ("Ada moved to Kiel in 2019, then to Bonn in 2021.", "Ada moved to Bonn in 2021."),
        ("Glas GmbH moved on 1 August to Hafenweg 3, 33607 Kiel.", "Glas GmbH: Hafenweg 3, 33607."),
        ("Ada is away. Send 20 EUR to Ben.", "Ada sends Ben 20 EUR."),
        ("Ada manages Ben.", "Ben is managed by Ada."),
        ("Ada's brother is Ben.", "Ben is Ada's brother."),
        ("Kiel is bigger than Cologne.", "Cologne is smaller than Kiel."),
        ("Ada works with Ben.", "Ben works with Ada."),
        ("Ada, Ben and Carl like tea.", "Carl, Ada and Ben like tea."),
        ("Ada calls Ben. Ben calls Ada.", "Ben calls Ada."),
    ],
)
def test_a_rewording_is_accepted(source: str, text: str) -> None:
    assert not swapped_words(text, [source])


def test_sources_count_together() -> None:
    sources = ["Ada has 16 GB.", "Ben has 32 GB."]
    assert not swapped_words("Ben has 32 GB and Ada has 16 GB.", sources)
    assert swapped_words("Ben has 16 GB and Ada has 32 GB.", sources)


def test_the_names_and_the_quantities_that_were_exchanged_are_named() -> None:
    words = swapped_words("Kiel closes at 18:30. Cologne closes at 18:00.", [OFFICES])
    assert words == ["kiel", "18:30", "cologne", "18:00"]


@pytest.mark.parametrize("things", [["apples", "pears"], ["Ada", "plums"], ["apples", "16 GB"]])
def test_a_list_of_thousands_is_read_once_and_not_anew_for_each_of_its_parts(
    monkeypatch: pytest.MonkeyPatch, things: list[str]
) -> None:
    """A note of such a list once held up a worker for a minute, and a turn of it for hours."""
    lengths: list[int] = []

    def parse_and_count(text: str) -> ParsedText:
        lengths.append(len(text))
        return parse_text(text)

    monkeypatch.setattr(swaps, "parse_text", parse_and_count)
    text = ", ".join(things * 1000)
    assert not swapped_words("Ada has 16 GB.", [text])
    assert sum(lengths) < 10 * len(text)
