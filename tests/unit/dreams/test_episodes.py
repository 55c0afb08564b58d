"""DR12: episodes stay within their kinds and bounds; an update keeps the content of its episode."""

import json
from typing import Any

import pytest

from shared.dreams.passes import episodes
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation import errors
from tests.unit.dreams.builders import archived_memory, memory, memory_id

STORY = "On 3 May 2026 Ada and Bo chose Postgres."
ITEM = {
    "content": STORY,
    "category": "episodic/decision",
    "importance": 0.7,
    "tags": ["db"],
    "sourceSessions": ["s"],
}


def new(**change: Any) -> Any:
    return episodes.parse(json.dumps({"toSave": [ITEM | change], "toUpdate": []})).new


def test_an_episode_becomes_a_memory_draft() -> None:
    [episode] = new()
    assert (episode.category, episode.importance, episode.tags) == (
        "episodic/decision",
        0.7,
        ("episodic", "db"),
    )
    draft = episode.draft.validated()
    assert draft.source is not None
    assert draft.source.session_id == "s"


@pytest.mark.parametrize(
    ("value", "category"),
    [
        ("episodic/problem", "episodic/problem"),
        ("Task", "episodic/task"),
        ("episodic/party", "episodic/conversation"),
        ("user-preferences/discovery", "episodic/discovery"),
        (None, "episodic/conversation"),
        (5, "episodic/conversation"),
    ],
)
def test_the_category_is_one_of_the_five_kinds(value: Any, category: str) -> None:
    assert new(category=value)[0].category == category


@pytest.mark.parametrize(
    ("value", "importance"),
    [
        (1.0, 0.7),
        (0.7, 0.7),
        (0.0, 0.2),
        (-3, 0.2),
        (0.5, 0.5),
        (None, 0.4),
        ("high", 0.4),
        (float("nan"), 0.4),
    ],
)
def test_importance_stays_within_its_bounds(value: Any, importance: float) -> None:
    assert new(importance=value)[0].importance == importance


@pytest.mark.parametrize("content", [None, "", "  ", "a\x00", "x" * 16_001, 5])
def test_an_item_without_storable_content_is_left_out(content: Any) -> None:
    assert new(content=content) == ()


def continued(*items: dict[str, Any]) -> Any:
    return episodes.parse(json.dumps({"toSave": [], "toUpdate": list(items)})).continued


def test_an_update_needs_an_id() -> None:
    assert continued({"content": STORY}, {"id": "nope", "content": STORY}, {"id": memory_id(1)}) == ()
    [update] = continued({"id": f"[ID:{memory_id(10).upper()}]", "content": STORY, "importance": 2})
    assert (update.id, update.importance) == (memory_id(10), 0.7)


def test_an_update_must_keep_the_content_of_a_live_episode() -> None:
    shown = {
        memory_id(1): memory(1, STORY, category="episodic/decision"),
        memory_id(2): archived_memory(2, STORY),
        memory_id(3): memory(3, STORY, category="general"),
        memory_id(4): memory(4, STORY, category="episodic/task"),
    }
    longer = STORY + " In June Cem moved the shop over."
    items = [
        {"id": memory_id(1), "content": longer},
        {"id": memory_id(1), "content": longer + " Twice."},
        {"id": memory_id(3), "content": longer},
        {"id": memory_id(4), "content": "Ada chose Postgres."},
        {"id": memory_id(9), "content": longer},
    ]
    accepted, rejections = episodes.check_updates(continued(*items), shown)
    assert [update.id for update in accepted] == [memory_id(1)]
    expected = [
        RejectionCode.SOURCE_TAKEN,
        RejectionCode.UNKNOWN_ID,
        RejectionCode.LOSES_SPECIFICS,
        RejectionCode.UNKNOWN_ID,
    ]
    assert [rejection.code for rejection in rejections] == expected
    assert "Bo" in rejections[2].words
    archived_episodes = {
        memory_id(2): archived_memory(2, STORY).model_copy(update={"category": "episodic/task"})
    }
    assert (
        episodes.check_updates(continued({"id": memory_id(2), "content": longer}), archived_episodes)[1][
            0
        ].code
        == RejectionCode.NOT_LIVE
    )


def test_an_empty_reply_and_a_refusal_are_not_the_same() -> None:
    assert episodes.parse('{"toSave": [], "toUpdate": []}') == episodes.Episodes((), ())
    with pytest.raises(errors.InvalidModelReply):
        episodes.parse("sorry")
