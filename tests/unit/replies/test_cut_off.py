"""MO1: an answer that ended at a limit is no answer, by the endpoint's word or by the tokens that it used."""

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from shared.foundation import config, errors, model_output
from shared.infra.language_model import LanguageModel, open_language_model
from tests.standins.behaviours import Refusal, Reply, Truncated, usage
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour

TEXT = '[{"content": "Ada likes trains"}]'
MAX_TOKENS = 50


@pytest.fixture
async def model(models: ModelServer) -> AsyncIterator[LanguageModel]:
    settings = config.load(llm_base_url=models.url, llm_model="m", llm_max_tokens=MAX_TOKENS)
    opened = open_language_model(settings)
    assert opened is not None
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    "reply",
    [
        *(Reply(TEXT, reason) for reason in ("length", "max_tokens", "MAX_TOKENS", "content_filter")),
        Reply(TEXT, "stop", usage(10, MAX_TOKENS)),
        Reply(TEXT, "stop", {"output_tokens": MAX_TOKENS}),
        Reply("", "length"),
        Truncated(TEXT),
    ],
)
async def test_an_answer_that_ended_at_a_limit_is_cut_off(
    model: LanguageModel, models: ModelServer, reply: Behaviour
) -> None:
    models.chat_default = reply
    with pytest.raises(errors.CutOffReply):
        await model.complete("rules", "note")


@pytest.mark.parametrize("reason", ["stop", "eos", "end_turn", "STOP", "", None, 7])
@pytest.mark.parametrize("reported", [usage(10, MAX_TOKENS - 1), None, {"completion_tokens": None}])
async def test_an_answer_that_ended_by_itself_is_whole(
    model: LanguageModel, models: ModelServer, reason: Any, reported: Any
) -> None:
    models.chat_default = Reply(TEXT, reason, reported)
    assert (await model.complete("rules", "note")).text == TEXT


async def test_an_answer_without_a_reason_is_whole(
    model: LanguageModel, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    completion: Callable[..., dict[str, Any]] = Reply.completion

    def without_reason(reply: Reply, call: Any) -> dict[str, Any]:
        response = completion(reply, call)
        del response["choices"][0]["finish_reason"]
        return response

    monkeypatch.setattr(Reply, "completion", without_reason)
    models.chat_default = Reply(TEXT)
    assert (await model.complete("rules", "note")).text == TEXT


async def test_what_a_cut_off_answer_used_is_reported(model: LanguageModel, models: ModelServer) -> None:
    models.chat_default = Reply(TEXT, "length", usage(10, 40))
    with pytest.raises(errors.CutOffReply) as caught:
        await model.complete("rules", "note")
    assert caught.value.usage == usage(10, 40)


async def test_a_refusal_is_not_cut_off(model: LanguageModel, models: ModelServer) -> None:
    models.chat_default = Refusal()
    with pytest.raises(errors.InvalidModelReply) as caught:
        await model.complete("rules", "note")
    assert not isinstance(caught.value, errors.CutOffReply)


async def test_a_reply_that_is_longer_than_its_tokens_can_be_is_not_parsed(
    model: LanguageModel, models: ModelServer
) -> None:
    models.chat_default = Reply(TEXT + " " * MAX_TOKENS * 40, "stop", usage(10, 10))
    with pytest.raises(errors.InvalidModelReply, match="longer than"):
        await model.complete("system", "user")


@pytest.mark.parametrize("broken", ['[{"a" b}] ', '[{"a":1,}] '])
def test_a_reply_that_is_broken_in_many_places_is_given_up_early(broken: str) -> None:
    started = time.process_time()
    with pytest.raises(errors.InvalidModelReply, match="many places"):
        model_output.parse_objects(broken * 20_000)
    assert time.process_time() - started < 1, "each broken place costs a look at all text before it"


def test_a_few_broken_places_are_drafts() -> None:
    assert model_output.parse_objects('[{"a" b}] ' * 10 + '[{"content": "Ada"}]') == [{"content": "Ada"}]
