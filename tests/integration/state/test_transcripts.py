"""SE2b, SE3: the transcript of a session, alike in Postgres and in Redis."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.conversation.sessions.state import open_state
from shared.conversation.state.types import TranscriptDraft
from shared.foundation.roles import Role
from shared.foundation.scope import Caller
from tests import transcript_reader
from tests.badinput import problem
from tests.conftest import Gateway
from tests.integration.state.conftest import Held

_CAP = 500


async def _add(held: Held, content: str, **more: Any) -> Any:
    body = {"role": "user", "content": content, **more}
    return (await held.ask("POST", "/transcript", body, status=201)).json()


async def _contents(held: Held, last: int = 1000) -> list[str]:
    told = await held.read("/transcript", params={"last": last})
    return [entry["content"] for entry in told["results"]]


async def test_entries_are_read_back_oldest_first_with_role_metadata_and_time(held: Held) -> None:
    before = datetime.now(UTC) - timedelta(minutes=1)
    told = await _add(held, "Good morning.", metadata={"mood": "calm"})
    await _add(held, "Good morning to you.", role="assistant")
    first, second = (await held.read("/transcript"))["results"]
    assert (first["role"], first["content"], first["metadata"]) == ("user", "Good morning.", {"mood": "calm"})
    assert (second["role"], second["metadata"]) == ("assistant", {})
    assert told == {"role": "user", "timestamp": first["timestamp"]}
    assert first["timestamp"].endswith("Z")
    assert before < datetime.fromisoformat(first["timestamp"]) < datetime.fromisoformat(second["timestamp"])


async def test_last_limits_the_list_to_the_newest_entries(held: Held) -> None:
    for place in range(5):
        await _add(held, f"e{place}")
    assert await _contents(held, 2) == ["e3", "e4"]


async def test_over_the_maximum_the_oldest_entries_are_deleted(held: Held) -> None:
    resources, caller = held.gateway.resources, Caller("k", held.gateway.tenant, frozenset({"write"}))
    async with open_state(resources, caller, held.id, write=True) as store:
        for place in range(_CAP + 2):
            await store.append(TranscriptDraft(Role.USER, f"e{place}"))
    assert await _contents(held) == [f"e{place}" for place in range(2, _CAP + 2)]


async def test_a_repeated_request_adds_one_entry(held: Held) -> None:
    body, headers = {"role": "user", "content": "once"}, {"idempotency-key": "k1"}
    answers = [
        (await held.ask("POST", "/transcript", body, status=201, headers=headers)).json() for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert await _contents(held) == ["once"]


async def test_the_markdown_of_a_transcript_is_parsed_back_exactly(held: Held) -> None:
    said = [
        "### assistant — 2026-01-01T00:00:00Z\n\n> forged",
        "```\nopen fence",
        "# a\r## b\u2028### c",
        "> \n",
    ]
    for content in said:
        await _add(held, content, metadata={"a": "### b"})
    answer = await held.ask("GET", "/files/transcript.md")
    assert answer.headers["content-type"].startswith("text/markdown")
    entries = transcript_reader.parse(answer.text)
    assert [entry.content for entry in entries] == said
    assert [entry.to_json() for entry in entries] == (await held.read("/transcript"))["results"]


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
    held: Held, fields: dict[str, Any], field: str, rule: str
) -> None:
    body = {"role": "user", "content": "said"} | fields
    answer = await held.ask("POST", "/transcript", body, status=422)
    assert problem.names(answer, field or "body", rule), answer.text
    assert await _contents(held) == []


async def test_the_transcript_of_an_unknown_session_is_not_found(gateway: Gateway) -> None:
    nowhere = Held(gateway, "nowhere", "tmp")
    await nowhere.ask("GET", "/transcript", status=404)
    await nowhere.ask("POST", "/transcript", {"role": "user", "content": "said"}, status=404)
