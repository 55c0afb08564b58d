"""What counts as a term, in any script and of any length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.search.text.tokenizer import query_phrases, tokenize, tokenize_query


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("AI", "the AI act"),
        ("C#", "we write C# here"),
        ("C++", "ported to C++17"),
        ("UTC-6", "she lives in UTC-6"),
        ("x2", "do it x2"),
        ("7", "room 7"),
        ("3fa94b01c2de", "see entry 3fa94b01c2de"),
        ("2024-03-15", "due 2024-03-15."),
        ("1000", "it cost 1,000 dollars"),
        ("15", "on the 15th"),
        ("user_id", "the column user_id is null"),
        ("state", "call useState first"),
        ("5 km", "ran 5km"),
        ("email", "send an e-mail"),
        ("e-mail", "send an email"),
        ("brien", "Mr. O'Brien"),
        ("caroline", "Caroline\u2019s dog"),
        ("cafe", "le café noir"),
        ("café", "the cafe"),
        ("naïve", "nai\u0308ve"),
        ("strasse", "Lange Straße"),
        ("ЁЛКА", "елка"),
        ("йод", "Йод"),
        ("ελλάδα", "ΕΛΛΑΔΑ"),
        ("محمد", "مُحَمَّد"),
        ("हिन्दी", "वह हिन्दी बोलता है"),
        ("\uff21\uff29", "AI"),
        ("烤鸭", "我喜欢北京烤鸭"),
        ("京", "北京"),
        ("東京タワー", "昨日は東京タワーに行った"),
        ("ไทย", "ภาษาไทยง่าย"),
        ("ລາວ", "ພາສາລາວ"),
        ("ខ្មែរ", "ភាសាខ្មែរ"),
        ("မြန်မာ", "မြန်မာစာ"),
        ("한국", "한국어는 쉽다"),
        ("C#", "C#语言"),
        ("buy", "she bought it"),
        ("colour", "many colours"),
        ("hike", "went hiking"),
    ],
)
def test_a_query_finds_a_text_that_contains_it(query: str, text: str) -> None:
    assert set(tokenize_query(query)) & set(tokenize(text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("C#", "vitamin C"),
        ("C", "C++ and C#"),
        ("UTC-6", "UTC+6"),
        ("plane", "a plan"),
        ("universe", "the university"),
        ("й", "и"),
        ("烤鸭", "鸭烤"),
        ("100", "1,000"),
    ],
)
def test_different_words_give_different_terms(query: str, text: str) -> None:
    assert not set(tokenize_query(query)) <= set(tokenize(text))


def test_the_grammar_of_a_question_is_left_out_of_queries_only() -> None:
    assert tokenize_query("When did Caroline go to the support group?") == [
        "carolin",
        "go",
        "support",
        "group",
    ]
    assert "when" in tokenize("When did she go?")


def test_a_query_of_grammar_words_alone_keeps_them() -> None:
    assert tokenize_query("The Who") == ["the", "who"]


def test_a_query_names_each_word_once() -> None:
    assert tokenize_query("tea, tea and more TEA") == ["tea"]


def test_neighbouring_content_words_are_a_phrase() -> None:
    assert query_phrases("Where is the support group?") == ["support group"]
    assert query_phrases("北京烤鸭") == ["北京烤鸭"]


@given(st.text())
def test_terms_have_a_bounded_length_and_a_query_is_never_left_without_terms(text: str) -> None:
    terms = tokenize(text)
    assert all(0 < len(term) <= 2 * 64 for term in terms)
    assert bool(tokenize_query(text)) == bool(terms)
    assert set(tokenize_query(text)) <= set(terms)


@given(st.lists(st.sampled_from(["caf\u00e9", "C++", "UTC-6", "1,000", "hiking", "\u5317\u4eac", "it's"])))
def test_the_terms_of_a_text_are_the_terms_of_its_parts(parts: list[str]) -> None:
    assert tokenize(" ".join(parts)) == [term for part in parts for term in tokenize(part)]


def test_only_the_beginning_of_a_long_query_is_used() -> None:
    log = " ".join(f"word{i}" for i in range(50_000))
    assert len(tokenize_query(log)) < 1000
    assert len(query_phrases(log)) <= 32
