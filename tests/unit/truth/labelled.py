"""A made-up data file of the benchmark's shape."""

from typing import Any

_BAD_MOVE = {"text": "The user no longer lives in Vejle.", "why": "a visit to Kolding", "closes": 0}
_BAD_WORK = {"text": "The user tunes pianos in Odense.", "why": "the sister does", "closes": None}
_EVIDENCE = [{"speaker": "user", "date": "2026-03-01", "text": "I live in Vejle."}]


def content() -> dict[str, Any]:
    """Return one item of each sort: a dialogue of two sessions, a rewriting, a merge, and a pair."""
    first, second = "tale-s1", "tale-s2"
    turns = [
        _turn(first, "user", "I live in Vejle."),
        _turn(first, "assistant", "Does anybody in the family play?"),
        _turn(first, "user", "My sister tunes pianos in Odense."),
        _turn(second, "user", "I visited Kolding on Monday."),
        _turn(second, "user", "I live in Horsens now."),
    ]
    facts = [
        {"text": "The user lives in Vejle.", "supported_by": [0], "closes": None},
        {"text": "The user's sister tunes pianos in Odense.", "supported_by": [1, 2], "closes": None},
        {"text": "The user lives in Horsens now.", "supported_by": [4], "closes": 0},
    ]
    dialogue = {"id": "tale", "lang": "en", "turns": turns, "facts": facts, "bad": [_BAD_MOVE, _BAD_WORK]}
    rewrite = {
        "id": "note",
        "lang": "de",
        "date": "2026-03-01",
        "note": "the blue kettle leaks, sigh",
        "good": [["The blue kettle leaks."]],
        "bad": [["The blue kettle never leaks.", "The blue kettle leaks."]],
        "may_drop": ["sigh"],
    }
    merge = {
        "id": "pair-of-memories",
        "lang": "fr",
        "memories": [
            {"text": "Ida likes tea.", "date": "2026-03-01"},
            {"text": "Ida likes green tea.", "date": "2026-03-02"},
        ],
        "good": "Ida likes tea, green tea too.",
        "bad": ["Ida never likes tea."],
    }
    pair = {
        "id": "asked-alone",
        "lang": "en",
        "kind": "fact",
        "evidence": _EVIDENCE,
        "statement": "The user owns a house in Vejle.",
        "closes": None,
        "verdict": "not_said",
        "type": "added_detail",
    }
    return {"judge": [pair], "dialogues": [dialogue], "rewrites": [rewrite], "merges": [merge]}


def _turn(session: str, role: str, text: str) -> dict[str, str]:
    date = "2026-03-01" if session.endswith("1") else "2026-04-01"
    return {"session": session, "date": date, "role": role, "text": text}
