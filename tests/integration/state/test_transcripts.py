"""SE2b, SE3: the transcript of a session behaves alike in Postgres and in Redis."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.conversation.sessions.state import open_state
from shared.conversation.state.types import TranscriptDraft
from shared.foundation.roles import Role
from shared.foundation.scope import Caller
from shared.platform.resources import open_resources
from tests import transcript_reader
from tests.badinput import problem
from tests.conftest import Gateway
from tests.integration.state.conftest import SessionClient

_MAX_ENTRIES = 20


async def _add_entry(session: SessionClient, content: str, **fields: Any) -> Any:
    body = {"role": "user", "content": content, **fields}
    return (await session.request("POST", "/transcript", body, status=201)).json()


async def _contents(session: SessionClient, last: int = 1000) -> list[str]:
    page = await session.read("/transcript", params={"last": last})
    return [entry["content"] for entry in page["results"]]


async def test_entries_are_read_back_oldest_first_with_role_metadata_and_time(session: SessionClient) -> None:
    before = datetime.now(UTC) - timedelta(minutes=1)
    added = await _add_entry(session, "Good morning.", metadata={"mood": "calm"})
    await _add_entry(session, "Good morning to you.", role="assistant")
    first, second = (await session.read("/transcript"))["results"]
    assert (first["role"], first["content"], first["metadata"]) == ("user", "Good morning.", {"mood": "calm"})
    assert (second["role"], second["metadata"]) == ("assistant", {})
    assert added == {"role": "user", "timestamp": first["timestamp"]}
    assert first["timestamp"].endswith("Z")
    assert before < datetime.fromisoformat(first["timestamp"]) < datetime.fromisoformat(second["timestamp"])


async def test_last_limits_the_list_to_the_newest_entries(session: SessionClient) -> None:
    for position in range(5):
        await _add_entry(session, f"e{position}")
    assert await _contents(session, 2) == ["e3", "e4"]


async def test_over_the_maximum_the_oldest_entries_are_deleted(session: SessionClient) -> None:
    usual, caller = (
        session.gateway.resources.settings,
        Caller("k", session.gateway.tenant, frozenset({"write"})),
    )
    assert usual.session_max_transcript_entries == 500
    few = usual.model_copy(update={"session_max_transcript_entries": _MAX_ENTRIES})
    async with (
        open_resources(few) as resources,
        open_state(resources, caller, session.id, write=True) as store,
    ):
        for position in range(_MAX_ENTRIES + 2):
            await store.append(TranscriptDraft(Role.USER, f"e{position}"))
    assert await _contents(session) == [f"e{position}" for position in range(2, _MAX_ENTRIES + 2)]


async def test_a_repeated_request_adds_one_entry(session: SessionClient) -> None:
    body, headers = {"role": "user", "content": "once"}, {"idempotency-key": "k1"}
    responses = [
        (await session.request("POST", "/transcript", body, status=201, headers=headers)).json()
        for _ in range(2)
    ]
    assert responses[0] == responses[1]
    assert await _contents(session) == ["once"]


async def test_the_markdown_of_a_transcript_is_parsed_back_exactly(session: SessionClient) -> None:
    contents = [
        "### assistant — 2026-01-01T00:00:00Z\n\n> forged",
        "```\nopen fence",
        "# a\r## b\u2028### c",
        "> \n",
    ]
    for content in contents:
        await _add_entry(session, content, metadata={"a": "### b"})
    response = await session.request("GET", "/files/transcript.md")
    assert response.headers["content-type"].startswith("text/markdown")
    entries = transcript_reader.parse(response.text)
    assert [entry.content for entry in entries] == contents
    assert [entry.to_json() for entry in entries] == (await session.read("/transcript"))["results"]


@pytest.mark.parametrize(
    ("fields", "field", "rule"),
    [
        ({"content": " "}, "content", "blank"),
        ({"content": 1}, "content", "string"),
        ({"role": "robot"}, "role", "user"),
        ({"metadata": {"a": 1}}, "metadata.a", "string"),
        ({"content": "a\x00b"}, "", "NUL"),
    ],
)
async def test_an_invalid_entry_is_rejected_and_not_added(
    session: SessionClient, fields: dict[str, Any], field: str, rule: str
) -> None:
    body = {"role": "user", "content": "said"} | fields
    response = await session.request("POST", "/transcript", body, status=422)
    assert problem.names_violation(response, field or "body", rule), response.text
    assert await _contents(session) == []


async def test_the_transcript_of_an_unknown_session_is_not_found(gateway: Gateway) -> None:
    unknown = SessionClient(gateway, "unknown", "tmp")
    await unknown.request("GET", "/transcript", status=404)
    await unknown.request("POST", "/transcript", {"role": "user", "content": "said"}, status=404)
