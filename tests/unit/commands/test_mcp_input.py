"""Lines of standard input that the SDK of MCP would drop."""

import json

import pytest

from services.commands.mcp_input import without_halves


@pytest.mark.parametrize("half", [r"\ud83d", r"\uDE00", r"\ude00\ud83d"])
def test_half_a_character_becomes_a_nul_and_nothing_else_changes(half: str) -> None:
    line = '{"id": 1, "params": {"a-": ["x-y", "\\ud83d\\ude00", "é\\u0000"], "n": NaN}}'.replace("-", half)
    nuls = "\x00" * (len(half) // 6)
    changed = json.loads(without_halves(line))
    assert list(changed["params"]) == [f"a{nuls}", "n"]
    assert changed["params"][f"a{nuls}"] == [f"x{nuls}y", "😀", "é\x00"]
    without_halves(line).encode()


@pytest.mark.parametrize(
    "line", ['{"a": 1}', r'{"a": "\ud83d', "no json", r"\ud83d", "", "[" * 100_000 + r"\ud800"]
)
def test_another_line_stays_as_it_is(line: str) -> None:
    assert without_halves(line) == line


def test_an_escaped_backslash_is_no_escape() -> None:
    line = r'{"a": "\\ud83d"}'
    assert json.loads(without_halves(line)) == {"a": r"\ud83d"}
