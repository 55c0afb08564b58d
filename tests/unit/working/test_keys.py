"""How a key is resolved to a full path, and which caller may write it."""

import pytest

from shared.foundation import errors
from shared.memory.working import keys


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ("emails", "session/abc/emails"),
        ("emails/today", "session/abc/emails/today"),
        ("session/abc/emails", "session/abc/emails"),
        ("SESSION/ABC/emails", "SESSION/ABC/emails"),
        ("session/other", "session/abc/session/other"),
        ("patrol", "session/abc/patrol"),
        ("a:b.c", "session/abc/a:b.c"),
    ],
)
def test_a_bound_caller_writes_into_its_namespace(key: str, path: str) -> None:
    assert keys.resolve(key, "session/abc", write=True) == path
    assert keys.resolve(key, "session/abc") == path


@pytest.mark.parametrize("key", ["session/abcd/x", "patrol/mail/x", "Subagent/7/x", "session/ab/c/x"])
def test_a_bound_caller_may_read_but_not_write_paths_outside_its_namespace(key: str) -> None:
    assert keys.resolve(key, "session/abc") == key
    with pytest.raises(errors.Forbidden, match="session/abc"):
        keys.resolve(key, "session/abc", write=True)


@pytest.mark.parametrize("key", ["research/topic/notes", "session/abc/x", "alone", "two/parts"])
def test_an_unbound_caller_writes_any_full_path(key: str) -> None:
    assert keys.resolve(key, None, write=True) == key


@pytest.mark.parametrize(
    ("key", "rule"),
    [
        ("", "blank"),
        ("/a", "absolute"),
        ("a/../b", "'..'"),
        ("a/./b", "'.'"),
        ("a//b", "ASCII"),
        ("a/", "ASCII"),
        ("a b", "ASCII"),
        ("é", "ASCII"),
        ("a\n", "ASCII"),
        ("{a}", "ASCII"),
        ("x" * 513, "512"),
    ],
)
@pytest.mark.parametrize("namespace", [None, "session/abc"])
def test_an_invalid_key_is_refused_with_the_rule_it_breaks(
    key: str, rule: str, namespace: str | None
) -> None:
    with pytest.raises(errors.Invalid, match=rule) as error_info:
        keys.resolve(key, namespace)
    assert error_info.value.violations[0].field == "key"


def test_the_length_limit_applies_to_the_full_path() -> None:
    assert keys.resolve("x" * 500, "session/abc", write=True).endswith("x")
    with pytest.raises(errors.TooLarge):
        keys.resolve("x" * 501, "session/abc", write=True)


def test_the_chunks_of_a_value_with_the_longest_key_can_be_read() -> None:
    assert keys.resolve("x" * 512 + "-chunk12", None) == "x" * 512 + "-chunk12"


@pytest.mark.parametrize(
    "key", ["a/b/doc-index", "a/b/doc-INDEX", "a/b/doc-chunk0", "a/b/doc-Chunk007", "-index"]
)
def test_a_key_that_ends_like_a_chunk_or_index_is_read_only(key: str) -> None:
    with pytest.raises(errors.Invalid, match="read-only"):
        keys.resolve(key, None, write=True)
    assert keys.resolve(key, None) == key


@pytest.mark.parametrize(
    "key", ["index", "a/index", "a/b/reindex", "a/b/x-chunk", "a-index/b/c", "x-chunk1b"]
)
def test_a_key_that_only_resembles_a_chunk_or_index_is_writable(key: str) -> None:
    assert keys.resolve(key, None, write=True) == key


@pytest.mark.parametrize(
    ("key", "view"),
    [
        ("a/b/Doc", ("a/b/doc", False, None)),
        ("a/b/Doc-Index", ("a/b/doc", True, None)),
        ("a/b/doc-chunk0", ("a/b/doc", False, 0)),
        ("a/b/doc-chunk12", ("a/b/doc", False, 12)),
        ("a/b/doc-chunk012", ("a/b/doc-chunk012", False, None)),
    ],
)
def test_the_suffix_of_a_key_selects_the_index_or_a_chunk(
    key: str, view: tuple[str, bool, int | None]
) -> None:
    assert keys.parse_view(key) == view


@pytest.mark.parametrize(
    ("path", "namespace"), [("Session/ABC/x/y", "session/abc"), ("a/b", "a/b"), ("alone", "alone")]
)
def test_a_namespace_is_the_first_two_segments(path: str, namespace: str) -> None:
    assert keys.namespace_of(path) == namespace


def test_a_prefix_matches_whole_segments_without_regard_to_case() -> None:
    assert keys.is_within("Session/abc/x", "session/ABC")
    assert keys.is_within("session/abc", "session/abc")
    assert keys.is_within("anything", "")
    assert not keys.is_within("session/abcd/x", "session/abc")
    assert not keys.is_within("session", "session/abc")


@pytest.mark.parametrize(
    ("prefix", "namespace", "path"),
    [
        ("", None, ""),
        ("session", None, "session"),
        ("", "session/abc", "session/abc"),
        ("emails", "session/abc", "session/abc/emails"),
        ("session/other", "session/abc", "session/other"),
        ("PATROL", "session/abc", "PATROL"),
        ("research/x/notes", "research/x", "research/x/notes"),
    ],
)
def test_a_prefix_is_a_full_path_or_relative_to_the_bound_namespace(
    prefix: str, namespace: str | None, path: str
) -> None:
    assert keys.resolve_prefix(prefix, namespace) == path


@pytest.mark.parametrize("namespace", [None, "session/abc"])
def test_an_empty_prefix_cannot_be_cleared(namespace: str | None) -> None:
    with pytest.raises(errors.Invalid, match="prefix: must not be empty"):
        keys.resolve_prefix("", namespace, write=True)


@pytest.mark.parametrize("prefix", ["session", "session/abcd", "patrol/mail"])
def test_a_bound_caller_clears_only_its_own_namespace(prefix: str) -> None:
    assert keys.resolve_prefix("session/abc", "session/abc", write=True) == "session/abc"
    with pytest.raises(errors.Forbidden):
        keys.resolve_prefix(prefix, "session/abc", write=True)


@pytest.mark.parametrize("namespace", ["session", "session/abc/x", "", "../x", "session/a b"])
def test_a_namespace_with_other_than_two_segments_is_refused(namespace: str) -> None:
    with pytest.raises(errors.Invalid) as error_info:
        keys.resolve("x", namespace)
    assert error_info.value.violations[0].field == "namespace"
