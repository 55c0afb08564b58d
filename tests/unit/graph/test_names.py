"""The names in a message, and the lines of triples."""

from hypothesis import example, given
from hypothesis import strategies as st

from shared.memory.graph import names
from shared.memory.graph.triple import TripleDraft, line_of


def test_the_keys_of_a_long_message_are_bounded() -> None:
    words = names.message_words("a very long message " * 20_000)
    assert len(names.possible_keys(words)) <= 6 * len(words)
    assert sum(map(len, words)) <= names.MAX_MATCHED_CHARS


def test_no_name_spans_what_was_left_out() -> None:
    half = names.MAX_MATCHED_CHARS // 2
    words = names.message_words("x" * (half - 5) + " left" + "y" * half + "right " + "z" * (half - 6))
    assert not names.occurs("left right", words)


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
@example("", ">", "")
@example("", "->", "")
def test_a_line_has_one_arrow_and_one_confidence_whatever_the_names_are(a: str, b: str, c: str) -> None:
    line = line_of(a, b, f"{c} --x--> y (confidence=1.00)", 0.5)
    assert len(line.splitlines()) == 1
    assert line.count("-->") == line.count("(confidence=") == 1
    assert line.endswith("(confidence=0.50)")


@given(st.text(max_size=60))
def test_a_name_occurs_in_a_message_that_consists_of_it(name: str) -> None:
    folded = names.fold(name)
    key = names.key_of(folded)
    words = names.message_words(f"({name})")
    if key is not None and words:
        assert key in names.possible_keys(words)
        assert names.occurs(folded, words)


def test_a_confidence_has_no_digits_that_nobody_means() -> None:
    draft = TripleDraft(subject="Ada", predicate="likes", object="trains", confidence=0.28 * 3)
    assert draft.validated().confidence == 0.84
