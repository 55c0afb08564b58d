"""FB1, FB3: signals over HTTP: reported, read back newest first, bounded in time, gone with their session."""

import secrets
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, update

from shared.conversation.feedback import queries as feedback_queries
from shared.conversation.feedback import report as feedback_report
from shared.conversation.feedback.feedback_signal import FeedbackSignalDraft, SignalType
from shared.conversation.feedback.table import feedback_signal
from shared.foundation.scope import Scope
from tests.conftest import Gateway

Json = dict[str, Any]
DOWN = {"type": "UserThumbsDown", "summary": "The invoice went to the old address."}


async def _open(gateway: Gateway, session_id: str, **fields: Any) -> None:
    opened = await gateway.client.post("/v1/sessions", json={"id": session_id, **fields})
    assert opened.status_code == 201, opened.text


async def _report(gateway: Gateway, session_id: str, summary: str = "it", **fields: Any) -> Json:
    body = {**DOWN, "summary": summary, **fields}
    answer = await gateway.client.post(f"/v1/sessions/{session_id}/feedback", json=body)
    assert answer.status_code == 201, answer.text
    told: Json = answer.json()
    return told


async def _list(gateway: Gateway, **query: Any) -> Json:
    answer = await gateway.client.get("/v1/feedback", params=query)
    assert answer.status_code == 200, answer.text
    told: Json = answer.json()
    return told


async def _summaries(gateway: Gateway, **query: Any) -> list[str]:
    return [one["summary"] for one in (await _list(gateway, **query))["results"]]


async def _age(gateway: Gateway, signal_id: str, days: float) -> None:
    """Make a signal as old as this."""
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as connection:
        aged = update(feedback_signal).where(feedback_signal.c.id == signal_id)
        await connection.execute(aged.values(created_at=func.now() - timedelta(days=days)))


async def test_fb1_a_signal_has_an_id_of_twelve_hex_digits_its_time_and_its_sessions_owner(
    gateway: Gateway,
) -> None:
    await _open(gateway, "s/1", agent_id="support", user_id="ada")
    told = await _report(gateway, "s/1", detail="it came back")
    assert len(told["id"]) == 12
    assert int(told["id"], 16) >= 0
    assert told["created_at"]
    del told["id"], told["created_at"]
    assert told == {
        "session_id": "s/1",
        "type": "UserThumbsDown",
        "summary": "it",
        "detail": "it came back",
        "agent_id": "support",
        "user_id": "ada",
    }


@pytest.mark.parametrize("kind", list(SignalType))
async def test_fb1_every_type_is_reported_by_its_name_on_either_route(
    gateway: Gateway, kind: SignalType
) -> None:
    await _open(gateway, "s")
    first = await _report(gateway, "s", type=kind.value)
    body = {"session_id": "s", "type": kind.value, "summary": "it"}
    second = (await gateway.client.post("/v1/feedback", json=body)).json()
    assert first["type"] == second["type"] == kind.value
    assert first["detail"] is second["detail"] is None
    listed = (await _list(gateway, session_id="s"))["results"]
    assert listed == [second, first]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"type": "Other"}, 422, "type"),
        ({"type": 3}, 422, "type"),
        ({"summary": " \n"}, 422, "summary"),
        ({"summary": "x" * 501}, 413, "summary"),
        ({"summary": "nul \x00"}, 422, None),
        ({"detail": "x" * 4001}, 413, "detail"),
        ({"more": 1}, 422, "more"),
    ],
)
async def test_a_bad_signal_is_refused_with_its_field_and_nothing_is_stored(
    gateway: Gateway, body: Json, status: int, field: str | None
) -> None:
    await _open(gateway, "s")
    answer = await gateway.client.post("/v1/sessions/s/feedback", json=DOWN | body)
    assert answer.status_code == status, answer.text
    assert field in (None, *(one["field"] for one in answer.json()["errors"]))
    assert (await _list(gateway))["results"] == []


async def test_a_session_that_is_not_there_is_not_found(gateway: Gateway) -> None:
    for path, more in (("/v1/sessions/nobody/feedback", {}), ("/v1/feedback", {"session_id": "nobody"})):
        answer = await gateway.client.post(path, json=DOWN | more)
        assert (answer.status_code, "nobody" in answer.text) == (404, True)
    bad = await gateway.client.post("/v1/feedback", json={**DOWN, "session_id": "../s"})
    assert bad.status_code == 422


async def test_the_same_request_twice_is_one_signal(gateway: Gateway) -> None:
    await _open(gateway, "s")
    headers = {"idempotency-key": "once"}
    first, second = [
        await gateway.client.post("/v1/sessions/s/feedback", json=DOWN, headers=headers) for _ in range(2)
    ]
    assert first.json() == second.json()
    other = await gateway.client.post("/v1/sessions/s/feedback", json=DOWN | {"detail": "x"}, headers=headers)
    assert other.status_code == 409
    assert len((await _list(gateway))["results"]) == 1


async def test_a_signal_whose_id_is_taken_draws_another_whoever_adds_it(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _open(gateway, "s", user_id="ada")
    taken = (await _report(gateway, "s", "first"))["id"]
    draw, draws = secrets.token_hex, [taken]
    monkeypatch.setattr(secrets, "token_hex", lambda size: draws.pop() if size == 6 and draws else draw(size))
    draft = FeedbackSignalDraft(type=SignalType.SESSION_SUMMARY, summary="by a dream")
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as connection:
        await feedback_queries.insert_for_session_id(connection, gateway.tenant, "s", draft)
    assert draws == []
    draws.append(taken)
    await _report(gateway, "s", "by a caller")
    assert draws == []
    assert await _summaries(gateway, user_id="ada") == ["by a caller", "by a dream", "first"]


async def test_fb3_the_newest_n_of_the_last_d_days_are_listed_newest_first(gateway: Gateway) -> None:
    await _open(gateway, "s")
    told = {days: await _report(gateway, "s", f"{days} days old") for days in (9, 6, 3, 0)}
    for days, one in told.items():
        await _age(gateway, one["id"], days)
    assert await _summaries(gateway) == ["0 days old", "3 days old", "6 days old"]
    assert await _summaries(gateway, limit=2) == ["0 days old", "3 days old"]
    assert await _summaries(gateway, days=1) == ["0 days old"]
    assert len(await _summaries(gateway, days=10)) == 4


async def test_fb3_recent_reads_one_scope_and_drops_the_oldest_when_there_are_too_many(
    gateway: Gateway,
) -> None:
    await _open(gateway, "common", agent_id="a")
    await _open(gateway, "adas", agent_id="a", user_id="ada")
    await _open(gateway, "other", agent_id="b", user_id="ada")
    for session_id in ("common", "adas", "other"):
        for number in range(3):
            await _report(gateway, session_id, f"{session_id} {number}")
    old = await _report(gateway, "adas", "too old")
    await _age(gateway, old["id"], 7.1)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as connection:
        for user_id, name in (("ada", "adas"), (None, "common")):
            scope = Scope(gateway.tenant, "a", user_id)
            found = [one.summary for one in await feedback_report.recent(connection, scope)]
            assert found == [f"{name} 2", f"{name} 1", f"{name} 0"]
            assert len(await feedback_report.recent(connection, scope, limit=2)) == 2
        older = await feedback_report.recent(connection, Scope(gateway.tenant, "a", "ada"), days=8)
        assert [one.summary for one in older][-1] == "too old"


async def test_signals_are_filtered_by_session_type_agent_and_user(gateway: Gateway) -> None:
    await _open(gateway, "one", agent_id="a", user_id="ada")
    await _open(gateway, "two", agent_id="a")
    await _open(gateway, "three", agent_id="b", user_id="ada")
    for session_id in ("one", "two", "three"):
        await _report(gateway, session_id, session_id)
    await _report(gateway, "one", "up", type="UserThumbsUp")
    assert await _summaries(gateway, session_id="two") == ["two"]
    assert await _summaries(gateway, type="UserThumbsUp") == ["up"]
    assert await _summaries(gateway, agent_id="a") == ["up", "two", "one"]
    assert await _summaries(gateway, user_id="ada") == ["up", "three", "one"]
    assert await _summaries(gateway, agent_id="a", user_id="ada", type="UserThumbsDown") == ["one"]


async def test_pages_follow_each_other_without_gap_or_repeat(gateway: Gateway) -> None:
    await _open(gateway, "s")
    told = [(await _report(gateway, "s", str(number)))["id"] for number in range(7)]
    found, cursor = [], None
    for _ in range(3):
        page = await _list(gateway, limit=3, **({"cursor": cursor} if cursor else {}))
        found += [one["id"] for one in page["results"]]
        cursor = page["next_cursor"]
    assert found == told[::-1]
    assert cursor is None


@pytest.mark.parametrize("query", [{"days": 0}, {"limit": 101}, {"type": "Other"}, {"cursor": "x"}])
async def test_a_bad_query_is_refused(gateway: Gateway, query: Json) -> None:
    assert (await gateway.client.get("/v1/feedback", params=query)).status_code == 422


async def test_a_bound_key_reports_and_reads_only_what_it_is_bound_to(gateway: Gateway) -> None:
    await _open(gateway, "adas", agent_id="a", user_id="ada")
    await _open(gateway, "common", agent_id="a")
    await _open(gateway, "bobs", agent_id="b", user_id="bob")
    for session_id in ("adas", "common", "bobs"):
        await _report(gateway, session_id, session_id)
    for bound, seen in (({"agent_id": "a"}, ["common", "adas"]), ({"user_id": "ada"}, ["adas"])):
        async with await gateway.another(**bound) as client:
            listed = (await client.get("/v1/feedback")).json()["results"]
            assert [one["summary"] for one in listed] == seen
            assert (await client.post("/v1/sessions/bobs/feedback", json=DOWN)).status_code == 404
            refused = await client.get("/v1/feedback", params={"agent_id": "b", "user_id": "bob"})
            assert refused.status_code == 403


async def test_a_key_without_the_right_to_write_reports_nothing(gateway: Gateway) -> None:
    await _open(gateway, "s")
    async with await gateway.another(rights=frozenset({"read"})) as client:
        assert (await client.post("/v1/sessions/s/feedback", json=DOWN)).status_code == 403
        assert (await client.get("/v1/feedback")).status_code == 200


async def test_a_closed_session_takes_its_signals_and_their_answers_with_it(gateway: Gateway) -> None:
    await _open(gateway, "gone")
    await _open(gateway, "stays")
    headers = {"idempotency-key": "once"}
    await gateway.client.post("/v1/sessions/gone/feedback", json=DOWN, headers=headers)
    await _report(gateway, "stays", "stays")
    assert (await gateway.client.delete("/v1/sessions/gone")).status_code == 200
    assert await _summaries(gateway) == ["stays"]
    again = await gateway.client.post("/v1/sessions/gone/feedback", json=DOWN, headers=headers)
    assert again.status_code == 409
    assert DOWN["summary"] not in again.text


async def test_lt13_an_erased_user_leaves_no_signal_and_the_receipt_counts_them(gateway: Gateway) -> None:
    for agent in ("a", "b"):
        await _open(gateway, f"adas-{agent}", agent_id=agent, user_id="ada")
        await _report(gateway, f"adas-{agent}", agent)
    await _open(gateway, "bobs", agent_id="a", user_id="bob")
    await _report(gateway, "bobs", "bobs")
    receipt = (await gateway.client.delete("/v1/users/ada")).json()
    assert receipt["erased"]["feedback"] == 2
    assert await _summaries(gateway) == ["bobs"]


async def test_signals_past_their_time_are_deleted_and_others_stay(gateway: Gateway) -> None:
    await _open(gateway, "s")
    told = {days: await _report(gateway, "s", str(days)) for days in (31, 29)}
    for days, one in told.items():
        await _age(gateway, one["id"], days)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as connection:
        assert await feedback_queries.expire(connection, gateway.tenant, timedelta(days=30)) == 1
        kept = (await connection.scalars(select(feedback_signal.c.summary))).all()
    assert kept == ["29"]
