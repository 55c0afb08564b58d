"""CV2, DR6: each pass marks exactly the turns that it read; what arrives meanwhile stays unread."""

import asyncio
import json
from typing import Any

from shared.foundation.stages import DreamPass
from tests import run_pass
from tests.conftest import Gateway
from tests.integration.dreams.conftest import (
    add_turns,
    create_session,
    execute_run,
    list_unread,
    live,
    run_dream,
)
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

NOTHING = Reply(json.dumps({"occurrences": [], "toSave": [], "toUpdate": [], "entities": [], "triples": []}))


async def test_turns_that_arrive_while_a_pass_asks_the_model_stay_unread(
    model_gateway: Gateway, models: ModelServer
) -> None:
    """A writer adds turns while two passes read: each pass reads each turn once."""
    session = await create_session(model_gateway, "turn 0")
    written_count = 1
    prompts: list[str] = []
    loop = asyncio.get_running_loop()

    def reply_slowly(call: Any) -> str:
        nonlocal written_count
        prompts.append(call.prompt)
        asyncio.run_coroutine_threadsafe(
            add_turns(model_gateway, session, f"turn {written_count}"), loop
        ).result(10)
        written_count += 1
        return str(NOTHING.text)

    models.chat_default = Reply(reply_slowly)
    for _ in range(4):
        await run_dream(model_gateway, passes=["infer_preferences", "extract_episodes"])

    for name in (DreamPass.INFER_PREFERENCES, DreamPass.EXTRACT_EPISODES):
        unread = await list_unread(model_gateway, name)
        assert unread, "the last turn arrived while the last pass asked the model"
        read_turns = {f"turn {number}" for number in range(written_count)} - set(unread)
        for content in read_turns:
            assert any(content in prompt for prompt in prompts)
    assert await list_unread(model_gateway, DreamPass.MINE_ANTI_PATTERNS) == [
        f"turn {n}" for n in range(written_count)
    ]


async def test_a_skipped_or_failing_pass_marks_nothing_until_its_last_attempt(
    model_gateway: Gateway, models: ModelServer
) -> None:
    await create_session(model_gateway, "I like short answers.")
    models.chat_default = Reply("I would rather not.")
    run = (await model_gateway.client.post("/v1/dreams", json={"passes": ["infer_preferences"]})).json()
    await run_pass.run_pass(
        model_gateway.resources, model_gateway.tenant, run["id"], DreamPass.INFER_PREFERENCES
    )
    assert await list_unread(model_gateway, DreamPass.INFER_PREFERENCES) == ["I like short answers."]

    await execute_run(model_gateway.resources, model_gateway.tenant, run["id"])
    assert await list_unread(model_gateway, DreamPass.INFER_PREFERENCES) == []
    assert await list_unread(model_gateway, DreamPass.EXTRACT_EPISODES) == ["I like short answers."]


def _marks(session: str, *levels: tuple[int, str], content: str = "Ada wants short answers.") -> Reply:
    marks = [
        {
            "key": "short-answers",
            "content": content,
            "category": "user-preferences/style",
            "tags": [],
            "level": level,
            "sessionId": session,
            "seqs": [seq],
        }
        for seq, level in levels
    ]
    return Reply(json.dumps({"occurrences": marks}))


async def test_a_casual_wish_is_inferred_at_its_third_occurrence_counted_across_runs(
    model_gateway: Gateway, models: ModelServer
) -> None:
    session = await create_session(model_gateway, "Short, please.")
    for seq in (1, 2):
        models.chat_default = _marks(session, (seq, "casual"))
        await run_dream(model_gateway, passes=["infer_preferences"])
        assert await live(model_gateway) == {}
        await add_turns(model_gateway, session, "Shorter, please.")
    models.chat_default = _marks(session, (3, "casual"), (1, "casual"))

    await run_dream(model_gateway, passes=["infer_preferences"])

    [memory] = (await model_gateway.client.get("/v1/memories")).json()["results"]
    assert memory["content"] == "Ada wants short answers."
    assert memory["tags"][0] == "inferred"
    assert memory["metadata"]["source"] == "inferred"


async def test_one_very_irritated_occurrence_is_enough_and_money_needs_permission(
    model_gateway: Gateway, models: ModelServer
) -> None:
    session = await create_session(model_gateway, "NEVER pay invoices over 500 euros without asking me!")
    content = "Ada wants to be asked before invoices over 500 euros are paid."
    models.chat_default = _marks(session, (1, "very_irritated"), content=content)

    await run_dream(model_gateway, passes=["infer_preferences"])

    [memory] = (await model_gateway.client.get("/v1/memories")).json()["results"]
    assert memory["metadata"]["requires_user_permission"] == "true"


async def test_a_correction_becomes_an_anti_pattern_once(model_gateway: Gateway, models: ModelServer) -> None:
    session = await create_session(
        model_gateway, "No, that's wrong: the backup runs at 2 am, never restart then."
    )
    warning = "Don't restart the database at 2 am because the backup runs then — instead wait until 4 am."
    models.chat_default = Reply(
        json.dumps(
            {"toSave": [{"content": warning, "category": "anti-patterns/database", "sessionIds": [session]}]}
        )
    )

    first = await run_dream(model_gateway, passes=["mine_anti_patterns"])
    second = await run_dream(model_gateway, passes=["mine_anti_patterns"])

    assert first["passes"][0]["state"] == "done", first
    assert second["passes"][0]["state"] == "skipped"
    [memory] = (await model_gateway.client.get("/v1/memories", params={"category": "anti-patterns"})).json()[
        "results"
    ]
    assert memory["content"] == warning
    assert "anti-pattern" in memory["tags"]
