"""FB2: the turn before a correction decides about it, and a model judges the doubtful ones before mining."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.conversation.feedback import judge
from shared.foundation import prompt_size
from shared.foundation.scope import Scope
from shared.platform.spend.metered_calls import MeteredReply
from shared.platform.spend.usage import Usage
from tests.conftest import Gateway
from tests.integration.dreams.conftest import run_dream
from tests.standins.behaviours import Reply, Status
from tests.standins.models import ModelServer
from tests.standins.wire import Call, Wire

# Without the turn before, this one is more likely a correction than not, and that one less.
LIKELY, UNLIKELY = "No, the train to Kiel.", "Why did you delete my comments?"
MINED = json.dumps({"toSave": []})


async def _say(gateway: Gateway, *turns: tuple[str, str]) -> None:
    await gateway.client.post("/v1/sessions", json={"id": "s"})
    batch = [{"role": role, "content": content} for role, content in turns]
    response = await gateway.client.post("/v1/sessions/s/turns/batch", json={"turns": batch})
    assert response.status_code == 201, response.text


async def _corrections(gateway: Gateway) -> list[dict[str, Any]]:
    response = await gateway.client.get("/v1/feedback", params={"type": "Correction"})
    return list(response.json()["results"])


async def _details(gateway: Gateway) -> list[str]:
    return [signal["detail"] for signal in await _corrections(gateway)]


def _reply_with(verdicts: str) -> Reply:
    """Answer the question about doubtful corrections with these verdicts, and find nothing to mine."""
    return Reply(lambda call: verdicts if "1. assistant:" in call.prompt else MINED)


async def test_fb2_the_assistants_turn_before_decides_in_one_batch_and_over_two_requests(
    gateway: Gateway,
) -> None:
    text = "No, two adults and a child."
    await _say(gateway, ("assistant", "Are you three adults?"), ("user", text))
    await _say(gateway, ("assistant", "Is a child with you?"))
    await _say(gateway, ("user", text))
    assert await _details(gateway) == []
    await _say(gateway, ("assistant", "I have booked three adults."), ("user", text))
    await _say(gateway, ("assistant", "I have booked three adults."))
    await _say(gateway, ("user", text))
    await _say(gateway, ("assistant", "I have booked three adults."))
    await gateway.client.post("/v1/sessions/s/context", json={"message": text})
    assert await _details(gateway) == [text] * 3


async def test_without_a_model_a_doubtful_correction_counts_by_its_likelihood(
    gateway: Gateway,
) -> None:
    await _say(gateway, ("user", UNLIKELY), ("user", LIKELY))
    [signal] = await _corrections(gateway)
    assert signal["detail"] == LIKELY
    assert not {"likelihood", "previous"} & signal.keys()
    run = await run_dream(gateway, passes=["mine_anti_patterns"])
    assert run["passes"][0]["state"] == "skipped"
    assert await _details(gateway) == [LIKELY]


async def test_fb2_a_model_judges_the_doubtful_corrections_in_one_call_before_they_are_mined(
    model_gateway: Gateway, models: ModelServer
) -> None:
    await _say(model_gateway, ("user", LIKELY), ("user", UNLIKELY))
    # The newest comes first.
    models.chat_default = _reply_with('{"verdicts": {"1": true, "2": false}}')
    run = await run_dream(model_gateway, passes=["mine_anti_patterns"])
    assert run["passes"][0]["state"] == "done", run
    assert await _details(model_gateway) == [UNLIKELY]
    judged, mined = models.chat_calls
    assert LIKELY in judged.prompt
    assert UNLIKELY in judged.prompt
    assert UNLIKELY in mined.prompt.partition("Known already:")[0]
    assert LIKELY not in mined.prompt.partition("Known already:")[0]

    await run_dream(model_gateway, passes=["mine_anti_patterns"])
    assert len(models.chat_calls) == 2, "what was judged is not judged again"


async def test_what_the_model_does_not_judge_counts_by_its_likelihood(
    model_gateway: Gateway, models: ModelServer
) -> None:
    await _say(model_gateway, ("user", LIKELY), ("user", UNLIKELY))
    for verdicts in ("I can't tell.", '{"verdicts": {"7": false}}'):
        models.chat_default = _reply_with(verdicts)
        run = await run_dream(model_gateway, passes=["mine_anti_patterns"])
        assert run["passes"][0]["state"] in {"done", "skipped"}, run
        assert await _details(model_gateway) == [LIKELY]


async def test_a_sure_correction_is_not_judged(model_gateway: Gateway, models: ModelServer) -> None:
    await _say(model_gateway, ("user", "That's wrong, there is no such function."))
    models.chat_default = _reply_with('{"verdicts": {"1": false}}')
    await run_dream(model_gateway, passes=["mine_anti_patterns"])
    assert len(models.chat_calls) == 1
    assert len(await _corrections(model_gateway)) == 1


async def test_the_model_is_shown_what_the_assistant_said_before(
    model_gateway: Gateway, models: ModelServer
) -> None:
    await _say(model_gateway, ("assistant", "The train to Bonn is booked."), ("user", "No, I live in Kiel."))
    models.chat_default = _reply_with('{"verdicts": {"1": true}}')
    await run_dream(model_gateway, passes=["mine_anti_patterns"])
    judged = models.chat_calls[0].prompt
    assert "1. assistant: The train to Bonn is booked." in judged
    assert "user: No, I live in Kiel." in judged


def _refuse(word: str) -> Callable[[Call, Wire], None]:
    """Refuse to judge what has the word, as a filter of the endpoint does; confirm all else."""
    confirm = _reply_with(json.dumps({"verdicts": {str(number): True for number in range(1, 41)}}))

    def play(call: Call, wire: Wire) -> None:
        is_refused = "1. assistant:" in call.prompt and word in call.prompt
        (Status(400, error_code="content_policy") if is_refused else confirm).play(call, wire)

    return play


@dataclass(frozen=True)
class _Played:
    play: Callable[[Call, Wire], None]


async def test_what_the_model_refuses_to_judge_keeps_no_other_correction_from_being_judged_and_mined(
    model_gateway: Gateway, models: ModelServer
) -> None:
    sure = "That's wrong, there is no such function."
    likely = [f"No, the train to {city}." for city in ("Kiel", "Bonn", "Ulm", "Husum", "Jena")]
    await _say(model_gateway, ("user", sure), *(("user", text) for text in likely), ("user", UNLIKELY))
    models.chat_default = _Played(_refuse("Ulm"))
    models.chat_replies.append(Reply('{"verdicts": {}}'))  # an answer first: the endpoint is no stranger
    await run_dream(model_gateway, passes=["mine_anti_patterns"])
    await _say(model_gateway, ("user", "That's wrong, it is another function."))
    run = await run_dream(model_gateway, passes=["mine_anti_patterns"])
    assert run["passes"][0]["state"] == "done", run
    assert UNLIKELY in await _details(model_gateway), "judged in a smaller part"
    judged = [call for call in models.chat_calls if "1. assistant:" in call.prompt]
    assert len(judged) <= 14


async def test_the_questions_about_corrections_keep_within_the_tokens_of_a_prompt(
    gateway: Gateway,
) -> None:
    long_text = "No, the train to Kiel. " + "It is late. " * 60
    await _say(gateway, *(("user", f"{long_text}{number}") for number in range(12)))
    prompts: list[str] = []

    async def ask(_: str, prompt: str) -> MeteredReply:
        prompts.append(prompt)
        return MeteredReply('{"verdicts": {}}', Usage(1, 1), None, "stand-in")

    async def free_tokens(_: str) -> int:
        return 600

    scope = Scope(gateway.tenant, "default", None)
    await judge.judge_doubtful(gateway.resources, scope, ask, free_tokens)
    assert len(prompts) > 1
    assert all(prompt_size.tokens_of(prompt) <= 600 for prompt in prompts)
