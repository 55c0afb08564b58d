"""The stand-in fails as programmed, records its calls, and ends calls that hang."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.standins.behaviours import Cut, Drip, Drop, Hang, Reply, Slow, Status
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT, EMBEDDINGS
from tests.unit.standins.conftest import Caller


def test_calls_are_recorded_with_body_headers_and_time(server: ModelServer, caller: Caller) -> None:
    before = time.monotonic()
    caller.http.headers["Authorization"] = "Bearer secret"
    caller.chat("hello", temperature=0)
    caller.embed("one", "two")
    chat, embedding = server.calls
    assert (chat.path, chat.body["temperature"], chat.model) == (CHAT, 0, "m")
    assert chat.headers["authorization"] == "Bearer secret"
    assert chat.prompt == "be brief\nhello"
    assert embedding.texts == ["one", "two"]
    assert before <= chat.at <= embedding.at <= time.monotonic()


def test_a_call_has_the_behaviour_that_was_played(server: ModelServer, caller: Caller) -> None:
    server.chat_replies.append(Status(500))
    caller.chat()
    caller.chat()
    assert [call.behaviour for call in server.chat_calls] == [Status(500), Reply()]


def test_a_dropped_call_gets_no_answer(server: ModelServer, caller: Caller) -> None:
    server.chat_replies.append(Drop())
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        caller.chat()
    assert caller.chat_text() == "ok"


def test_a_cut_answer_ends_in_its_body(server: ModelServer, caller: Caller) -> None:
    server.chat_replies.append(Cut())
    with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"):
        caller.chat()


def test_a_hanging_call_answers_when_released(server: ModelServer, caller: Caller) -> None:
    hang = Hang(then=Reply("late"))
    server.chat_replies.append(hang)
    with ThreadPoolExecutor() as pool:
        hanging = pool.submit(caller.chat_text)
        server.wait_for_calls(1)
        assert not hanging.done()
        hang.release.set()
        assert hanging.result(timeout=10) == "late"


def test_a_hanging_call_blocks_no_other(server: ModelServer, caller: Caller) -> None:
    server.chat_replies.append(Hang())
    with ThreadPoolExecutor() as pool:
        hanging = pool.submit(caller.chat_text)
        server.wait_for_calls(1)
        assert caller.chat_text() == "ok"
        server.release()
        assert hanging.result(timeout=10) == "ok"


def test_a_default_that_hangs_answers_plainly_after_release(server: ModelServer, caller: Caller) -> None:
    server.embedding_default = Hang()
    with ThreadPoolExecutor() as pool:
        hanging = pool.submit(caller.vectors, "tea")
        server.wait_for_calls(1)
        server.release()
        assert len(hanging.result(timeout=10)[0]) == server.dimension


def test_stopping_ends_a_hanging_call(caller: Caller, server: ModelServer) -> None:
    server.chat_default = Hang()
    with ThreadPoolExecutor() as pool:
        hanging = pool.submit(caller.chat)
        server.wait_for_calls(1)
        server.stop()
        with pytest.raises(httpx.TransportError):
            hanging.result(timeout=10)


def test_a_slow_call_takes_longer_than_a_short_timeout(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Slow(30)
    caller.http.timeout = httpx.Timeout(0.05)
    with pytest.raises(httpx.ReadTimeout):
        caller.chat()


def test_a_slow_call_is_answered_after_its_delay(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Slow(0.05, then=Reply("slowly"))
    before = time.monotonic()
    assert caller.chat_text() == "slowly"
    assert time.monotonic() - before >= 0.05


def test_a_dripping_answer_takes_longer_than_a_timeout_per_read(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Drip(0.5, "drop by drop")
    caller.http.timeout = httpx.Timeout(0.3)
    before = time.monotonic()
    assert caller.chat_text() == "drop by drop"
    assert time.monotonic() - before >= 0.4


def test_waiting_for_calls_ends_when_they_have_arrived(server: ModelServer, caller: Caller) -> None:
    with ThreadPoolExecutor() as pool:
        future = pool.submit(server.wait_for_calls, 2, 10, EMBEDDINGS)
        caller.chat()
        caller.embed("a")
        caller.embed("b")
        assert [call.texts for call in future.result(timeout=10)] == [["a"], ["b"]]


def test_waiting_for_calls_that_do_not_come_is_an_error(server: ModelServer) -> None:
    with pytest.raises(TimeoutError, match=r"0 of 1 calls arrived within 0\.01 s"):
        server.wait_for_calls(1, timeout=0.01)


def test_a_stopped_server_refuses_and_comes_back_on_the_same_port(
    server: ModelServer, caller: Caller
) -> None:
    address = server.url
    caller.chat()
    server.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.post(f"{address}/chat/completions", json={})
    server.start()
    assert server.url == address
    assert caller.chat_text() == "ok"
    assert len(server.calls) == 2


def test_a_reset_server_behaves_like_a_new_one(server: ModelServer, caller: Caller) -> None:
    server.chat_default = Status(500)
    server.chat_replies.append(Status(502))
    caller.embed("a")
    server.reset()
    assert server.calls == []
    assert caller.chat_text() == "ok"


def test_many_callers_share_a_plan_without_loss(server: ModelServer) -> None:
    server.chat_replies.extend(Reply(str(n)) for n in range(200))

    def ask(_: int) -> list[str]:
        caller = Caller(server)
        with caller.http:
            return [caller.chat_text() for _ in range(25)]

    with ThreadPoolExecutor(8) as pool:
        texts = [text for batch in pool.map(ask, range(8)) for text in batch]
    assert sorted(texts, key=int) == [str(n) for n in range(200)]
    assert len(server.calls) == 200


def test_another_path_is_a_404(caller: Caller) -> None:
    assert caller.http.post("/completions", json={}).status_code == 404


def test_the_model_is_listed(caller: Caller) -> None:
    assert [model["id"] for model in caller.http.get("/models").json()["data"]] == ["stand-in"]


def test_stopping_leaves_no_thread() -> None:
    others = set(threading.enumerate())
    server = ModelServer()
    server.start()
    httpx.post(f"{server.url}/chat/completions", json={"model": "m", "messages": []}, timeout=10)
    started = set(threading.enumerate()) - others
    server.stop()
    assert started
    assert not any(thread.is_alive() for thread in started)
