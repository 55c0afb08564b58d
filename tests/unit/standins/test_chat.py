"""The stand-in replies as programmed, in the shapes of a real chat model."""

import json

import pytest

from tests.standins.behaviours import (
    EmptyChoices,
    Fenced,
    Garbage,
    Refusal,
    Reply,
    Status,
    Thinking,
    Truncated,
    WrongShape,
    usage,
)
from tests.standins.models import ModelServer
from tests.unit.standins.conftest import Caller


def test_a_completion_has_openais_shape(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Reply("four words are here")
    answer = caller.chat("one two").json()
    assert answer["object"] == "chat.completion"
    assert answer["model"] == "m"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["choices"][0]["message"]["content"] == "four words are here"
    assert answer["usage"] == usage(prompt=4, completion=4)


def test_a_function_makes_the_reply_from_the_request(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Reply(lambda call: call.prompt.upper())
    assert caller.chat_text("please") == "BE BRIEF\nPLEASE"


def test_a_function_that_fails_is_seen_by_the_caller(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Reply(lambda call: str(call.body["absent"]))
    answer = caller.chat()
    assert answer.status_code == 500
    assert "absent" in answer.json()["error"]["message"]


def test_planned_replies_come_in_order_and_then_the_default(server: ModelServer, caller: Caller) -> None:
    server.chat_replies.extend([Reply("first"), Reply("second")])
    assert [caller.chat_text() for _ in range(3)] == ["first", "second", "ok"]


def test_the_default_can_change_while_running(server: ModelServer, caller: Caller) -> None:
    before = caller.chat_text()
    server.chat_default = Reply("changed")
    assert [before, caller.chat_text()] == ["ok", "changed"]


def test_cached_tokens_are_in_the_usage(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Reply("ok", cached_tokens=3)
    assert caller.chat().json()["usage"]["prompt_tokens_details"] == {"cached_tokens": 3}


def test_usage_can_be_given_or_left_out(server: ModelServer, caller: Caller) -> None:
    server.chat_replies.extend([Reply(usage={"input_tokens": 5}), Reply(usage=None)])
    assert caller.chat().json()["usage"] == {"input_tokens": 5}
    assert "usage" not in caller.chat().json()


def test_a_truncated_reply_ends_early_and_says_length(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Truncated('{"entries": []}', keep=6)
    choice = caller.chat().json()["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", '{"entr')


def test_a_thinking_reply_starts_with_its_block(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Thinking('{"a": 1}')
    thought, _, text = caller.chat_text().partition("</think>")
    assert thought.startswith("<think>")
    assert json.loads(text) == {"a": 1}


def test_a_fenced_reply_has_the_text_between_fences(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Fenced('{"a": 1}')
    assert caller.chat_text().split("```json\n")[1].split("\n```")[0] == '{"a": 1}'


def test_a_refusal_has_no_content(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Refusal("no")
    message = caller.chat().json()["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == (None, "no")


def test_choices_can_be_empty(server: ModelServer, caller: Caller) -> None:
    server.chat_default = EmptyChoices()
    assert caller.chat().json()["choices"] == []


def test_garbage_is_a_200_without_json(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Garbage()
    answer = caller.chat()
    assert answer.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        answer.json()


def test_a_wrong_shape_is_json_of_another_kind(server: ModelServer, caller: Caller) -> None:
    server.chat_default = WrongShape(["not", "it"])
    assert caller.chat().json() == ["not", "it"]


@pytest.mark.parametrize("code", [401, 429, 500, 502, 529])
def test_an_error_status_comes_in_openais_shape(server: ModelServer, caller: Caller, code: int) -> None:
    server.chat_default = Status(code)
    answer = caller.chat()
    assert (answer.status_code, set(answer.json()["error"])) == (code, {"message", "type", "param", "code"})
    assert "retry-after" not in answer.headers


def test_retry_after_is_a_header(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Status(429, retry_after=1.5)
    assert caller.chat().headers["retry-after"] == "1.5"
