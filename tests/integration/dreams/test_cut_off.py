"""MO1: an answer that was cut off is no answer: what it covers is asked again in smaller parts."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from shared.foundation import config
from shared.foundation.stages import DreamPass
from tests.conftest import Gateway, running_gateway
from tests.integration.dreams.conftest import create_session, list_unread, live, run_dream
from tests.integration.dreams.plans import NOTHING, shown_ids
from tests.standins.behaviours import Reply, Truncated
from tests.standins.models import ModelServer
from tests.standins.replies import Text
from tests.standins.wire import Call, Wire

EPISODE = {"content": "The backup was moved to 4 am.", "category": "episodic/decision"}


class CutOffAbove:
    """Cut off every answer about more than `limit` items; answer `text` about fewer."""

    def __init__(self, limit: int, count: Callable[[Call], int], text: Text) -> None:
        self._limit, self._count, self._text = limit, count, text

    def play(self, call: Call, wire: Wire) -> None:
        if self._count(call) > self._limit:
            Truncated('{"toDelete": [], "toSave": [{"content": "The beginning', keep=40).play(call, wire)
        else:
            Reply(self._text).play(call, wire)


def count_turns(call: Call) -> int:
    return call.prompt.count("(user): turn")


def first_pass(run: dict[str, Any]) -> dict[str, Any]:
    return dict(run["passes"][0])


async def test_a_cut_off_plan_is_asked_again_in_halves_and_every_memory_is_reviewed(
    model_gateway: Gateway, models: ModelServer
) -> None:
    batch = [{"content": f"Crate {n} holds lamp{n * 7}.", "enrich": False} for n in range(12)]
    await model_gateway.client.post("/v1/memories/batch", json={"memories": batch})
    models.chat_default = CutOffAbove(4, lambda call: len(shown_ids(call)), NOTHING.text)

    consolidation = first_pass(await run_dream(model_gateway, passes=["consolidate"]))

    assert consolidation["state"] == "done"
    assert set(consolidation["inputs"]) == set(await live(model_gateway))
    assert sorted(len(shown_ids(call)) for call in models.chat_calls) == [3, 3, 3, 3, 6, 6, 12]
    assert first_pass(await run_dream(model_gateway, passes=["consolidate"]))["state"] == "skipped"


async def test_turns_of_cut_off_answers_are_asked_again_in_halves_and_read_once(
    model_gateway: Gateway, models: ModelServer
) -> None:
    await create_session(model_gateway, *(f"turn {n}" for n in range(8)))
    models.chat_default = CutOffAbove(2, count_turns, json.dumps({"toSave": [EPISODE]}))

    extraction = first_pass(await run_dream(model_gateway, passes=["extract_episodes"]))

    assert (extraction["state"], len(extraction["inputs"]["turns"])) == ("done", 8)
    assert sorted(map(count_turns, models.chat_calls)) == [2, 2, 2, 2, 4, 4, 8]
    assert await list_unread(model_gateway, DreamPass.EXTRACT_EPISODES) == []
    assert list((await live(model_gateway)).values()) == [EPISODE["content"]]


@pytest.mark.parametrize("name", ["infer_preferences", "extract_episodes"])
async def test_answers_that_are_always_cut_off_mark_nothing_read(
    model_gateway: Gateway, models: ModelServer, name: str
) -> None:
    contents = [f"turn {n}" for n in range(4)]
    await create_session(model_gateway, *contents)
    models.chat_default = CutOffAbove(0, count_turns, "")

    ended = first_pass(await run_dream(model_gateway, passes=[name]))

    assert ended["state"] == "failed"
    assert await list_unread(model_gateway, DreamPass(name)) == contents
    assert await live(model_gateway) == {}


async def test_a_single_turn_whose_answer_is_cut_off_stays_unread_and_the_others_are_read(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> None:
    settings = make_settings(llm_base_url=models.url, llm_model="m")
    async with running_gateway(settings, tenant) as gateway:
        await create_session(gateway, "turn 0", "turn 1", "turn POISON", "turn 3")

        def too_many(call: Call) -> int:
            return int("POISON" in call.prompt)

        models.chat_default = CutOffAbove(0, too_many, NOTHING.text)
        extraction = first_pass(await run_dream(gateway, passes=["extract_episodes"]))
        unread = await list_unread(gateway, DreamPass.EXTRACT_EPISODES)

    assert extraction["state"] == "done"
    assert [rejection["code"] for rejection in extraction["rejections"]] == ["cut_off"]
    assert unread == ["turn POISON"]
