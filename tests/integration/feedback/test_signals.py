"""FB1, FB3: feedback signals over HTTP: report, list newest first, retention, deletion with the session."""

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
THUMBS_DOWN = {"type": "UserThumbsDown", "summary": "The invoice went to the old address."}


async def _open(gateway: Gateway, session_id: str, **fields: Any) -> None:
    response = await gateway.client.post("/v1/sessions", json={"id": session_id, **fields})
    assert response.status_code == 201, response.text


async def _report(gateway: Gateway, session_id: str, summary: str = "it", **fields: Any) -> Json:
    body = {**THUMBS_DOWN, "summary": summary, **fields}
    response = await gateway.client.post(f"/v1/sessions/{session_id}/feedback", json=body)
    assert response.status_code == 201, response.text
    payload: Json = response.json()
    return payload


async def _list(gateway: Gateway, **query: Any) -> Json:
    response = await gateway.client.get("/v1/feedback", params=query)
    assert response.status_code == 200, response.text
    payload: Json = response.json()
    return payload


async def _summaries(gateway: Gateway, **query: Any) -> list[str]:
    return [signal["summary"] for signal in (await _list(gateway, **query))["results"]]


async def _set_age(gateway: Gateway, signal_id: str, days: float) -> None:
    """Make a signal this many days old."""
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        statement = update(feedback_signal).where(feedback_signal.c.id == signal_id)
        await tx.execute(statement.values(created_at=func.now() - timedelta(days=days)))


async def test_fb1_a_signal_has_an_id_of_twelve_hex_digits_a_time_and_the_owner_of_its_session(
    gateway: Gateway,
) -> None:
    await _open(gateway, "s/1", agent_id="support", user_id="ada")
    signal = await _report(gateway, "s/1", detail="it came back")
    assert len(signal["id"]) == 12
    assert int(signal["id"], 16) >= 0
    assert signal["created_at"]
    del signal["id"], signal["created_at"]
    assert signal == {
        "session_id": "s/1",
        "type": "UserThumbsDown",
        "summary": "it",
        "detail": "it came back",
        "agent_id": "support",
        "user_id": "ada",
    }


@pytest.mark.parametrize("signal_type", list(SignalType))
async def test_fb1_every_type_is_reported_by_its_name_on_either_route(
    gateway: Gateway, signal_type: SignalType
) -> None:
    await _open(gateway, "s")
    first = await _report(gateway, "s", type=signal_type.value)
    body = {"session_id": "s", "type": signal_type.value, "summary": "it"}
    second = (await gateway.client.post("/v1/feedback", json=body)).json()
    assert first["type"] == second["type"] == signal_type.value
    assert first["detail"] is second["detail"] is None
    assert (await _list(gateway, session_id="s"))["results"] == [second, first]


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
async def test_an_invalid_signal_is_rejected_with_its_field_and_not_stored(
    gateway: Gateway, body: Json, status: int, field: str | None
) -> None:
    await _open(gateway, "s")
    response = await gateway.client.post("/v1/sessions/s/feedback", json=THUMBS_DOWN | body)
    assert response.status_code == status, response.text
    assert field in (None, *(violation["field"] for violation in response.json()["errors"]))
    assert (await _list(gateway))["results"] == []


async def test_a_signal_for_an_unknown_session_is_not_found(gateway: Gateway) -> None:
    for path, fields in (("/v1/sessions/nobody/feedback", {}), ("/v1/feedback", {"session_id": "nobody"})):
        response = await gateway.client.post(path, json=THUMBS_DOWN | fields)
        assert (response.status_code, "nobody" in response.text) == (404, True)
    response = await gateway.client.post("/v1/feedback", json={**THUMBS_DOWN, "session_id": "../s"})
    assert response.status_code == 422


async def test_a_repeated_request_stores_one_signal(gateway: Gateway) -> None:
    await _open(gateway, "s")
    headers = {"idempotency-key": "once"}
    first, second = [
        await gateway.client.post("/v1/sessions/s/feedback", json=THUMBS_DOWN, headers=headers)
        for _ in range(2)
    ]
    assert first.json() == second.json()
    other = await gateway.client.post(
        "/v1/sessions/s/feedback", json=THUMBS_DOWN | {"detail": "x"}, headers=headers
    )
    assert other.status_code == 409
    assert len((await _list(gateway))["results"]) == 1


async def test_a_signal_whose_random_id_exists_gets_another_id(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _open(gateway, "s", user_id="ada")
    existing_id = (await _report(gateway, "s", "first"))["id"]
    token_hex, next_ids = secrets.token_hex, [existing_id]
    monkeypatch.setattr(
        secrets, "token_hex", lambda size: next_ids.pop() if size == 6 and next_ids else token_hex(size)
    )
    draft = FeedbackSignalDraft(type=SignalType.SESSION_SUMMARY, summary="by a dream")
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await feedback_queries.insert_for_session_id(tx, "s", draft)
    assert next_ids == []
    next_ids.append(existing_id)
    await _report(gateway, "s", "by a caller")
    assert next_ids == []
    assert await _summaries(gateway, user_id="ada") == ["by a caller", "by a dream", "first"]


async def test_fb3_the_newest_n_of_the_last_d_days_are_listed_newest_first(gateway: Gateway) -> None:
    await _open(gateway, "s")
    signals = {days: await _report(gateway, "s", f"{days} days old") for days in (9, 6, 3, 0)}
    for days, signal in signals.items():
        await _set_age(gateway, signal["id"], days)
    assert await _summaries(gateway) == ["0 days old", "3 days old", "6 days old"]
    assert await _summaries(gateway, limit=2) == ["0 days old", "3 days old"]
    assert await _summaries(gateway, days=1) == ["0 days old"]
    assert len(await _summaries(gateway, days=10)) == 4


async def test_fb3_recent_returns_the_newest_signals_of_one_scope_up_to_the_limit(
    gateway: Gateway,
) -> None:
    await _open(gateway, "common", agent_id="a")
    await _open(gateway, "adas", agent_id="a", user_id="ada")
    await _open(gateway, "other", agent_id="b", user_id="ada")
    for session_id in ("common", "adas", "other"):
        for number in range(3):
            await _report(gateway, session_id, f"{session_id} {number}")
    old_signal = await _report(gateway, "adas", "too old")
    await _set_age(gateway, old_signal["id"], 7.1)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        for user_id, name in (("ada", "adas"), (None, "common")):
            scope = Scope(gateway.tenant, "a", user_id)
            summaries = [signal.summary for signal in await feedback_report.recent(tx, scope)]
            assert summaries == [f"{name} 2", f"{name} 1", f"{name} 0"]
            assert len(await feedback_report.recent(tx, scope, limit=2)) == 2
        signals = await feedback_report.recent(tx, Scope(gateway.tenant, "a", "ada"), days=8)
        assert signals[-1].summary == "too old"


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
    reported_ids = [(await _report(gateway, "s", str(number)))["id"] for number in range(7)]
    listed_ids, cursor = [], None
    for _ in range(3):
        page = await _list(gateway, limit=3, **({"cursor": cursor} if cursor else {}))
        listed_ids += [signal["id"] for signal in page["results"]]
        cursor = page["next_cursor"]
    assert listed_ids == reported_ids[::-1]
    assert cursor is None


@pytest.mark.parametrize("query", [{"days": 0}, {"limit": 101}, {"type": "Other"}, {"cursor": "x"}])
async def test_an_invalid_query_is_rejected(gateway: Gateway, query: Json) -> None:
    assert (await gateway.client.get("/v1/feedback", params=query)).status_code == 422


async def test_a_bound_key_reports_and_reads_only_signals_within_its_binding(gateway: Gateway) -> None:
    await _open(gateway, "adas", agent_id="a", user_id="ada")
    await _open(gateway, "common", agent_id="a")
    await _open(gateway, "bobs", agent_id="b", user_id="bob")
    for session_id in ("adas", "common", "bobs"):
        await _report(gateway, session_id, session_id)
    for binding, visible in (({"agent_id": "a"}, ["common", "adas"]), ({"user_id": "ada"}, ["adas"])):
        async with await gateway.new_client(**binding) as client:
            signals = (await client.get("/v1/feedback")).json()["results"]
            assert [signal["summary"] for signal in signals] == visible
            assert (await client.post("/v1/sessions/bobs/feedback", json=THUMBS_DOWN)).status_code == 404
            response = await client.get("/v1/feedback", params={"agent_id": "b", "user_id": "bob"})
            assert response.status_code == 403


async def test_a_key_without_the_write_right_cannot_report_signals(gateway: Gateway) -> None:
    await _open(gateway, "s")
    async with await gateway.new_client(rights=frozenset({"read"})) as client:
        assert (await client.post("/v1/sessions/s/feedback", json=THUMBS_DOWN)).status_code == 403
        assert (await client.get("/v1/feedback")).status_code == 200


async def test_deleting_a_session_deletes_its_signals_and_their_stored_responses(gateway: Gateway) -> None:
    await _open(gateway, "deleted")
    await _open(gateway, "stays")
    headers = {"idempotency-key": "once"}
    await gateway.client.post("/v1/sessions/deleted/feedback", json=THUMBS_DOWN, headers=headers)
    await _report(gateway, "stays", "stays")
    assert (await gateway.client.delete("/v1/sessions/deleted")).status_code == 200
    assert await _summaries(gateway) == ["stays"]
    retried = await gateway.client.post("/v1/sessions/deleted/feedback", json=THUMBS_DOWN, headers=headers)
    assert retried.status_code == 409
    assert THUMBS_DOWN["summary"] not in retried.text


async def test_lt13_erasing_a_user_deletes_their_signals_and_counts_them_in_the_receipt(
    gateway: Gateway,
) -> None:
    for agent in ("a", "b"):
        await _open(gateway, f"adas-{agent}", agent_id=agent, user_id="ada")
        await _report(gateway, f"adas-{agent}", agent)
    await _open(gateway, "bobs", agent_id="a", user_id="bob")
    await _report(gateway, "bobs", "bobs")
    receipt = (await gateway.client.delete("/v1/users/ada")).json()
    assert receipt["erased"]["feedback"] == 2
    assert await _summaries(gateway) == ["bobs"]


async def test_signals_older_than_the_retention_period_are_deleted_and_newer_ones_are_kept(
    gateway: Gateway,
) -> None:
    await _open(gateway, "s")
    signals = {days: await _report(gateway, "s", str(days)) for days in (31, 29)}
    for days, signal in signals.items():
        await _set_age(gateway, signal["id"], days)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        assert await feedback_queries.delete_expired(tx, timedelta(days=30)) == 1
        summaries = (await tx.scalars(select(feedback_signal.c.summary))).all()
    assert summaries == ["29"]
