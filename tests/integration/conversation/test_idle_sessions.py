"""The window of a session that was idle is empty."""

from tests.conftest import Gateway
from tests.idle_sessions import make_idle

SECONDS = 60.0


async def _open(gateway: Gateway, session_id: str, turns: int, **scope: str) -> None:
    await gateway.client.post("/v1/sessions", json={"id": session_id, **scope})
    for number in range(turns):
        await _say(gateway, session_id, f"turn {number}")


async def _say(gateway: Gateway, session_id: str, content: str, **fields: str) -> None:
    body = {"role": "user", "content": content, **fields}
    response = await gateway.client.post(f"/v1/sessions/{session_id}/turns", json=body)
    assert response.status_code == 201, response.text


async def _window(gateway: Gateway, session_id: str) -> list[str]:
    response = await gateway.client.get(f"/v1/sessions/{session_id}/turns")
    assert response.status_code == 200, response.text
    return [turn["content"] for turn in response.json()["results"]]


async def test_the_window_of_a_session_is_empty_after_an_hour_and_not_before(gateway: Gateway) -> None:
    ttl = gateway.resources.settings.window_ttl
    await _open(gateway, "harbour", 2)
    await make_idle(gateway, "harbour", idle_seconds=ttl - SECONDS)
    assert await _window(gateway, "harbour") == ["turn 0", "turn 1"]
    await make_idle(gateway, "harbour", idle_seconds=ttl + SECONDS)
    assert await _window(gateway, "harbour") == []
    body = {"message": "are you there?", "record_turn": False}
    context = await gateway.client.post("/v1/sessions/harbour/context", json=body)
    assert "turn 1" not in context.text
    assert (await gateway.client.get("/v1/sessions/harbour")).status_code == 200


async def test_a_turn_that_is_received_now_ends_idleness_whatever_its_own_time(gateway: Gateway) -> None:
    await _open(gateway, "harbour", 1)
    await make_idle(gateway, "harbour", idle_seconds=gateway.resources.settings.window_ttl + SECONDS)
    await _say(gateway, "harbour", "of long ago", created_at="2020-01-01T00:00:00Z")
    assert "of long ago" in await _window(gateway, "harbour")
