"""FB2: a turn that corrects the agent becomes a feedback signal in the transaction that stores the turn."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

from shared.conversation.feedback import report as feedback_report
from shared.conversation.feedback.feedback_signal import FeedbackSignal, SignalType
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.turns import append
from shared.conversation.turns.turn import Turn
from shared.foundation.roles import Role
from shared.foundation.scope import Caller
from shared.infra.transaction import Transaction
from tests.conftest import Gateway


def _turns(*contents: tuple[Role, str]) -> list[Turn]:
    return [
        Turn(
            session_id="s",
            seq=seq,
            role=role,
            speaker=None,
            content=content,
            created_at=datetime(2020, 1, 1, tzinfo=UTC),
            metadata={},
        )
        for seq, (role, content) in enumerate(contents, start=1)
    ]


@asynccontextmanager
async def _open_session(gateway: Gateway) -> AsyncIterator[tuple[Transaction, Session]]:
    body = {"id": "s", "agent_id": "support", "user_id": "ada"}
    await gateway.client.post("/v1/sessions", json=body)
    caller = Caller("k", gateway.tenant, frozenset({"write"}))
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        yield tx, await get_session(tx, gateway.resources.settings, caller, "s")


async def _signals(gateway: Gateway) -> list[FeedbackSignal]:
    async with _open_session(gateway) as (connection, session):
        return await feedback_report.recent(connection, session.scope)


async def test_fb2_only_corrections_by_users_become_signals_in_the_order_of_the_turns(
    gateway: Gateway,
) -> None:
    turns = _turns(
        (Role.USER, "No problem, go on."),
        (Role.USER, "No, that's wrong."),
        (Role.ASSISTANT, "No, that's wrong: it is Friday."),
        (Role.SYSTEM, "That's wrong."),
        (Role.SUMMARY, "The user turns: no, that's wrong."),
        (Role.USER, "Das stimmt nicht!"),
    )
    async with _open_session(gateway) as (connection, session):
        await append.notify_dreams(connection, gateway.resources.settings, session, turns)
    signals = await _signals(gateway)
    assert [signal.detail for signal in signals] == ["Das stimmt nicht!", "No, that's wrong."]
    assert {(signal.type, signal.summary) for signal in signals} == {
        (SignalType.CORRECTION, feedback_report.CORRECTION_SUMMARY)
    }
    assert {(signal.session_id, signal.agent_id, signal.user_id) for signal in signals} == {
        ("s", "support", "ada")
    }


async def test_the_signal_of_a_backdated_turn_has_the_time_of_its_arrival(gateway: Gateway) -> None:
    async with _open_session(gateway) as (connection, session):
        await append.notify_dreams(
            connection, gateway.resources.settings, session, _turns((Role.USER, "try again"))
        )
    [signal] = await _signals(gateway)
    assert signal.created_at.year > 2020


async def test_the_detail_is_the_first_two_hundred_characters(gateway: Gateway) -> None:
    text = "That's wrong: " + "ä" * 1000
    async with _open_session(gateway) as (connection, session):
        await append.notify_dreams(connection, gateway.resources.settings, session, _turns((Role.USER, text)))
    [signal] = await _signals(gateway)
    assert signal.detail == text[:200]


async def test_turns_without_a_correction_leave_no_signal(gateway: Gateway) -> None:
    async with _open_session(gateway) as (connection, session):
        await append.notify_dreams(connection, gateway.resources.settings, session, [])
        await append.notify_dreams(
            connection, gateway.resources.settings, session, _turns((Role.USER, "Thank you!"))
        )
    assert await _signals(gateway) == []


async def test_a_turn_that_is_not_stored_leaves_no_signal(gateway: Gateway) -> None:
    with suppress(LookupError):
        async with _open_session(gateway) as (connection, session):
            await append.notify_dreams(
                connection, gateway.resources.settings, session, _turns((Role.USER, "try again"))
            )
            assert len(await feedback_report.recent(connection, session.scope)) == 1
            raise LookupError
    assert await _signals(gateway) == []


async def test_a_thousand_corrections_in_one_batch_are_all_stored(gateway: Gateway) -> None:
    turns = _turns(*[(Role.USER, f"No, that is wrong: it is {number}.") for number in range(1000)])
    async with _open_session(gateway) as (connection, session):
        await append.notify_dreams(connection, gateway.resources.settings, session, turns)
        signals = await feedback_report.recent(connection, session.scope, limit=2000)
    assert [signal.detail for signal in signals[::-1]] == [turn.content for turn in turns]


async def test_fb2_a_correction_becomes_a_signal_on_every_route_that_adds_turns(gateway: Gateway) -> None:
    client = gateway.client
    await client.post("/v1/sessions", json={"id": "s", "agent_id": "support", "user_id": "ada"})
    await client.post("/v1/sessions/s/turns", json={"role": "user", "content": "No, that's wrong."})
    turns = [{"role": role, "content": "Try again."} for role in ("user", "assistant")]
    await client.post("/v1/sessions/s/turns/batch", json={"turns": turns})
    context = await client.post("/v1/sessions/s/context", json={"message": "That didn't work."})
    assert context.status_code == 200
    signals = (await client.get("/v1/feedback", params={"type": "Correction"})).json()["results"]
    assert [signal["detail"] for signal in signals] == [
        "That didn't work.",
        "Try again.",
        "No, that's wrong.",
    ]
