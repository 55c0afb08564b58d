"""DR12: episodes within their kinds and bounds; a continuation keeps what was told."""

import json
from typing import Any

import pytest

from shared.dreams.passes import episodes
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation import errors
from tests.unit.dreams.entries import archived, entry, name

STORY = "On 3 May 2026 Ada and Bo chose Postgres."
TOLD = {
    "content": STORY,
    "category": "episodic/decision",
    "importance": 0.7,
    "tags": ["db"],
    "sourceSessions": ["s"],
}


def new(**change: Any) -> Any:
    return episodes.parse(json.dumps({"toSave": [TOLD | change], "toUpdate": []})).new


def test_an_episode_becomes_an_entry() -> None:
    [one] = new()
    assert (one.category, one.importance, one.tags) == ("episodic/decision", 0.7, ("episodic", "db"))
    draft = one.draft.validated()
    assert draft.source is not None
    assert draft.source.session_id == "s"


@pytest.mark.parametrize(
    ("offered", "category"),
    [
        ("episodic/problem", "episodic/problem"),
        ("Task", "episodic/task"),
        ("episodic/party", "episodic/conversation"),
        ("user-preferences/discovery", "episodic/discovery"),
        (None, "episodic/conversation"),
        (5, "episodic/conversation"),
    ],
)
def test_the_category_is_one_of_the_five(offered: Any, category: str) -> None:
    assert new(category=offered)[0].category == category


@pytest.mark.parametrize(
    ("offered", "importance"),
    [
        (1.0, 0.95),
        (0.95, 0.95),
        (0.0, 0.2),
        (-3, 0.2),
        (0.5, 0.5),
        (None, 0.4),
        ("high", 0.4),
        (float("nan"), 0.4),
    ],
)
def test_importance_stays_within_the_guide(offered: Any, importance: float) -> None:
    assert new(importance=offered)[0].importance == importance


@pytest.mark.parametrize("content", [None, "", "  ", "a\x00", "x" * 16_001, 5])
def test_what_has_no_content_is_left_out(content: Any) -> None:
    assert new(content=content) == ()


def continued(*items: dict[str, Any]) -> Any:
    return episodes.parse(json.dumps({"toSave": [], "toUpdate": list(items)})).continued


def test_a_continuation_needs_an_id() -> None:
    assert continued({"content": STORY}, {"id": "nope", "content": STORY}, {"id": name(1)}) == ()
    [one] = continued({"id": f"[ID:{name(10).upper()}]", "content": STORY, "importance": 2})
    assert (one.id, one.importance) == (name(10), 0.95)


def test_a_continuation_keeps_what_was_told_of_a_live_episode() -> None:
    kept = {
        name(1): entry(1, STORY, category="episodic/decision"),
        name(2): archived(2, STORY),
        name(3): entry(3, STORY, category="general"),
        name(4): entry(4, STORY, category="episodic/task"),
    }
    longer = STORY + " In June Cem moved the shop over."
    items = [
        {"id": name(1), "content": longer},
        {"id": name(1), "content": longer + " Twice."},
        {"id": name(3), "content": longer},
        {"id": name(4), "content": "Ada chose Postgres."},
        {"id": name(9), "content": longer},
    ]
    accepted, rejections = episodes.check_updates(continued(*items), kept)
    assert [one.id for one in accepted] == [name(1)]
    expected = [
        RejectionCode.SOURCE_TAKEN,
        RejectionCode.UNKNOWN_ID,
        RejectionCode.LOSES_SPECIFICS,
        RejectionCode.UNKNOWN_ID,
    ]
    assert [one.code for one in rejections] == expected
    assert "Bo" in rejections[2].words
    gone = {name(2): archived(2, STORY).model_copy(update={"category": "episodic/task"})}
    assert (
        episodes.check_updates(continued({"id": name(2), "content": longer}), gone)[1][0].code
        == RejectionCode.NOT_LIVE
    )


def test_nothing_worth_telling_and_a_refusal_are_not_the_same() -> None:
    assert episodes.parse('{"toSave": [], "toUpdate": []}') == episodes.Episodes((), ())
    with pytest.raises(errors.InvalidModelReply):
        episodes.parse("sorry")
