"""Each row of a table has the names of its columns if there are some, no wrong ones, and not too many."""

import pytest

from shared.memory.documents.chunk import chunk
from workers.documents.parsing import csv_rows
from workers.documents.parsing.read import read


def _texts(*lines: str) -> list[str]:
    return [block.text for block in read("\n".join(lines).encode(), "table.csv", None).blocks]


@pytest.mark.parametrize(
    ("lines", "last"),
    [
        ((",x,y", "0,5,7", "1,6,8"), "1 | x: 6 | y: 8"),
        (("Town,2023,2024", "Kiel,5,7", "Bonn,6,8"), "Town: Bonn | 2023: 6 | 2024: 8"),
        (("Town,People,2024", "Kiel,5,7", "Bonn,6,8"), "Town: Bonn | People: 6 | 2024: 8"),
        (("Town,People,", "Kiel,5,", "Bonn,6,"), "Town: Bonn | People: 6"),
        (("Town,Price,Price", "Kiel,5,7", "Bonn,6,8"), "Town: Bonn | Price: 6 | Price: 8"),
        (("Prices of May", "Town,Price", "Kiel,5", "Bonn,6"), "Town: Bonn | Price: 6"),
        (
            ("Prices of May,,", "", "Town,Price,Day", "Kiel,5,2026-01-01"),
            "Town: Kiel | Price: 5 | Day: 2026-01-01",
        ),
        (("Price", "5", "6 €"), "Price: 6 €"),
        (("first_name,home_town", "Ada,Kiel", "Bob,Bonn"), "first_name: Bob | home_town: Bonn"),
        (("name,town", "Ada,Kiel", "Bob,Bonn"), "name: Bob | town: Bonn"),
        (("Name,Team", "Ada,Red", "Bob,Blue", "Cyd,Red", "Dee,Blue"), "Name: Dee | Team: Blue"),
        (("Name;Price", "Ada, Bob;5", "Cyd, Dee;6"), "Name: Cyd, Dee | Price: 6"),
        (("Name,Price", '"Ada ""the"" Bee", 5'), 'Name: Ada "the" Bee | Price: 5'),
        (("Name,Price", "Ada,n/a", "Bob,5", "Cyd,6", "Dee,7", "Eve,8"), "Name: Eve | Price: 8"),
        (("Name,Town", "Ada,Kiel", "Bob,Paris"), "Name: Bob | Town: Paris"),
    ],
)
def test_rows_have_the_names_of_their_columns(lines: tuple[str, ...], last: str) -> None:
    assert _texts(*lines)[-1] == last


@pytest.mark.parametrize(
    ("lines", "last"),
    [
        (("Ada,Paris", "Bob,Kiel"), "Bob | Kiel"),
        (("Name,Town", "Ada,Kiel"), "Ada | Kiel"),
        (("ada,paris", "bob,kiel"), "bob | kiel"),
        (("Ada,35", "Bob,40"), "Bob | 40"),
        (("Ada,n/a", "Bob,40"), "Bob | 40"),
        (("Ada,n/a,35", "Bob,40,36"), "Bob | 40 | 36"),
        (("Ada,1999", "Bob,2001"), "Bob | 2001"),
        (("Ada,2000", "Bob,35"), "Bob | 35"),
        (("2000,2001", "2002,2003"), "2002 | 2003"),
        (("Ada,Red", "Bob,Red", "Cyd,Blue", "Dee,Blue", "Eve,Blue"), "Eve | Blue"),
    ],
)
def test_rows_have_no_names_if_it_is_not_clear_that_there_are_some(lines: tuple[str, ...], last: str) -> None:
    assert _texts(*lines)[-1] == last


def test_a_title_above_a_table_names_nothing_and_lines_are_counted_on() -> None:
    blocks = read(b"Prices of May\n\nTown,Price\nKiel,5\n", "table.csv", None).blocks
    assert [(block.text, block.line_from) for block in blocks] == [
        *(("Prices of May", 1), ("Town | Price", 3), ("Town: Kiel | Price: 5", 4))
    ]


def test_a_list_of_words_and_prose_stay_plain_text() -> None:
    assert _texts("Town", "Kiel", "Bonn") == ["Town\nKiel\nBonn"]
    prose = ("The plan", "We begin, as ever, in May.", "Then we go on.", "It ends, we hope.", "In June.")
    assert _texts(*prose) == ["\n".join(prose)]


def test_long_names_do_not_multiply_the_text() -> None:
    columns = 50
    header = ",".join(f"Column {number} {'x' * 1000}" for number in range(columns))
    rows = [",".join(str(number + row) for number in range(columns)) for row in range(50)]
    blocks = read("\n".join((header, *rows)).encode(), "table.csv", None).blocks
    assert len(blocks) == 51
    assert len(chunk(blocks)) < 150  # most of them are the first row
    assert blocks[1].text == " | ".join(map(str, range(columns)))


def test_a_long_name_is_cut() -> None:
    assert (
        _texts(f"Town,{'Price ' * 50}", "Kiel,5")[-1] == f"Town: Kiel | {('Price ' * 50)[:59].rstrip()}…: 5"
    )


def test_the_usual_names_of_a_wide_table_stay() -> None:
    rows = [",".join(f"Measured {number}" for number in range(40)), ",".join("7" * 40)]
    assert _texts(*rows)[-1].startswith("Measured 0: 7 | Measured 1: 7")


def test_names_are_left_out_where_the_text_would_be_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ("Town,Price", *("Kiel,5",) * 10)
    monkeypatch.setattr(csv_rows, "MAX_TEXT_BYTES", 150)
    assert _texts(*lines)[-1] == "Kiel | 5"
