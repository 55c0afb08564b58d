"""A scope is exported with every kind of record; it is imported elsewhere, again, in part, with other ids."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import orjson
import pytest

from shared.context.build import build_context
from shared.context.request import Request
from shared.conversation.observations import search as observation_search
from shared.conversation.observations.search import ObservationFilters
from shared.conversation.turns import append
from shared.conversation.turns import search as turn_search
from shared.conversation.turns.search import TurnFilters
from shared.conversation.turns.turn import TurnDraft
from shared.foundation import errors
from shared.foundation.roles import Role
from shared.lifecycle import delete_memory
from shared.lifecycle.transfer import export_scope, import_rows, import_scope, line_kinds
from shared.memory.pinned import read, write
from shared.platform.idempotency.idempotent import IdempotencyKey
from shared.platform.resources import Resources
from tests.integration.transfer import scope_lines
from tests.integration.transfer.conftest import TenantStack, new_stack
from tests.integration.transfer.scope_lines import SESSION
from tests.integration.transfer.scopes import Line, export_lines, import_lines


def comparable(line: Line) -> Line:
    """Return a line without what depends on when it is read, with its times as times."""
    ignored = {"agent_id", "user_id"} if line["kind"] == "memory" else set()
    return {name: _moment(value) for name, value in line.items() if name not in ignored}


def _moment(value: Any) -> Any:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value


async def test_every_field_of_every_kind_survives_an_export_and_an_import(
    stack: TenantStack, resources: Resources
) -> None:
    report = await import_lines(stack, *scope_lines.ALL)
    assert (report["created"], report["malformed"], report["refused"]) == (len(scope_lines.ALL), [], [])
    exported = await export_lines(stack)
    by_kind = [comparable(line) for line in exported]
    for line in scope_lines.ALL:
        assert comparable(line) in by_kind
    assert len(exported) == len(scope_lines.ALL)
    async with new_stack(resources) as target:
        assert (await import_lines(target, *exported))["created"] == len(exported)
        assert await export_lines(target) == exported
        repeated = await import_lines(target, *exported)
        assert (repeated["skipped"], repeated["created"], repeated["updated"]) == (len(exported), 0, 0)
        assert await export_lines(target) == exported


async def test_what_was_imported_is_found_by_search_and_goes_on_where_it_stopped(stack: TenantStack) -> None:
    await import_lines(stack, *scope_lines.ALL)
    turns = await turn_search.search(stack.resources, stack.scope(), "lighthouse", TurnFilters(), 5)
    assert [turn.seq for turn, _ in turns.results] == [5]
    found = await observation_search.search(stack.resources, stack.scope(), "sails", ObservationFilters(), 5)
    assert [observation.id for observation, _ in found.results] == [scope_lines.OBSERVATION["id"]]
    draft = TurnDraft(role=Role.USER, content="And now?")
    [appended] = await append.append(stack.resources, stack.caller, SESSION, [draft])
    assert appended["seq"] == 8


async def test_a_row_that_differs_is_overwritten_or_kept_by_its_kind(stack: TenantStack) -> None:
    await import_lines(stack, *scope_lines.ALL)
    file = scope_lines.AGENT_FILE | {"content_type": "text/plain"}
    key = scope_lines.STATE_KEY | {"value": 2}
    session = scope_lines.SESSION_LINE | {"metadata": {"channel": "mail"}}
    turn = scope_lines.TURN | {"content": "The lighthouse is red."}
    report = await import_lines(stack, file, session, turn, key)
    assert report["updated"] == 3
    assert report["kinds"]["turn"]["kept"] == [f"{SESSION}/5"]
    exported = {line["kind"]: line for line in await export_lines(stack) if line.get("owner_kind") != "agent"}
    assert exported["agent_file"]["content_type"] == "text/plain"
    assert exported["state_key"]["value"] == 2
    assert exported["state_key"]["version"] > scope_lines.VERSION
    assert exported["session"]["metadata"] == {"channel": "mail"}
    assert exported["turn"]["content"] == scope_lines.TURN["content"]


async def test_an_import_that_was_killed_half_way_and_is_repeated_ends_the_same(
    stack: TenantStack, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_scope, "_BATCH", 2)
    turns = [scope_lines.TURN | {"seq": seq, "content": f"turn {seq}"} for seq in range(1, 8)]
    lines = [*scope_lines.ALL[:6], *turns, *scope_lines.ALL[7:]]
    await import_lines(stack, *lines)
    expected = await export_lines(stack)
    for killed_at in (1, 3, 6):
        async with new_stack(resources) as target:
            with monkeypatch.context() as patch:
                patch.setattr(import_scope, "import_rows", _killed_after(killed_at))
                with pytest.raises(asyncio.CancelledError):
                    await import_lines(target, *lines)
            await import_lines(target, *lines)
            assert await export_lines(target) == expected


def _killed_after(batches: int) -> Any:
    left = iter(range(batches))

    async def import_or_end(*arguments: Any) -> None:
        if next(left, None) is None:
            raise asyncio.CancelledError
        await import_rows.import_rows(*arguments)

    return import_or_end


async def test_a_deleted_memory_is_reported_and_comes_back_only_with_restore(stack: TenantStack) -> None:
    await import_lines(stack, *scope_lines.ALL)
    await delete_memory.delete_memory(stack.resources, stack.caller, "aaaaaaaaaaaa")
    assert (await import_lines(stack, *scope_lines.ALL))["tombstoned"] == ["aaaaaaaaaaaa"]
    assert (await import_lines(stack, *scope_lines.ALL, restore=True))["created"] == 1


async def test_pinned_texts_for_which_contexts_have_no_room_are_refused(stack: TenantStack) -> None:
    def pinned(name: str, length: int) -> Line:
        return scope_lines.PINNED_TEXT | {"name": name, "content": "x" * length}

    ada = stack.scope(user="ada")
    await import_lines(stack, pinned("a", 3000), scope=ada)
    rule = {"kind": "pinned_text", "rule": "a context would show too many characters of pinned texts"}
    report = await import_lines(stack, pinned("a", 4000), pinned("b", 1001), pinned("c", 1000))
    assert (report["created"], report["refused"]) == (2, [{"line": 2, **rule}])
    report = await import_lines(stack, pinned("a", 4000), pinned("b", 1), scope=ada)
    assert (report["created"], report["updated"]) == (0, 0)
    assert report["refused"] == [{"line": 1, **rule}, {"line": 2, **rule}]
    report = await import_lines(stack, pinned("a", 2000), pinned("b", 1000), scope=ada)
    assert (report["created"], report["updated"], report["refused"]) == (1, 1, [])


async def test_a_summary_is_imported_only_behind_the_window_and_goes_when_one_of_its_turns_comes_back(
    stack: TenantStack,
) -> None:
    """CV3: a turn is in the summary, or it is replayed; nothing came before the summary that it lacks."""
    replayed = scope_lines.SESSION_SUMMARY | {"last_seq": 2}
    report = await import_lines(stack, scope_lines.SESSION_LINE, replayed)
    rule = "its session here still replays turns that it has"
    assert report["refused"] == [{"line": 2, "kind": "session_summary", "rule": rule}]
    backwards = scope_lines.SESSION_SUMMARY | {"first_seq": 2}
    assert len((await import_lines(stack, backwards))["malformed"]) == 1
    assert (await import_lines(stack, scope_lines.SESSION_SUMMARY))["created"] == 1
    other = scope_lines.SESSION_SUMMARY | {"content": "Something else."}
    report = await import_lines(stack, other)
    assert report["kinds"]["session_summary"]["kept"] == [SESSION]
    await import_lines(stack, scope_lines.TURN)
    assert "session_summary" in {line["kind"] for line in await export_lines(stack)}
    await import_lines(stack, scope_lines.TURN | {"seq": 1})
    assert "session_summary" not in {line["kind"] for line in await export_lines(stack)}


async def test_a_stored_context_is_erased_when_an_import_replaces_its_pinned_text(
    stack: TenantStack,
) -> None:
    before = await write.put(stack.resources, stack.scope(), "tone", "Answer in prose.", stack.caller.origin)
    await import_lines(stack, scope_lines.SESSION_LINE)
    key = IdempotencyKey("context", "k", b"digest")
    arguments = (stack.resources, stack.caller, SESSION, Request("Which tone?"), key)
    assert "Answer in prose." in str(await build_context(*arguments))
    await import_lines(stack, scope_lines.PINNED_TEXT)
    with pytest.raises(errors.Conflict, match="erased"):
        await build_context(*arguments)
    assert (await read.get(stack.resources, stack.scope(), "tone")).version > before.version


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ({"kind": "spend"}, "kind: must be one of"),
        ({"kind": 7}, "kind: must be one of"),
        (scope_lines.TURN | {"colour": "red"}, "colour: Extra inputs are not permitted"),
        (scope_lines.TURN | {"seq": 2**31 - 1}, "seq: must be 1 to"),
        (scope_lines.TURN | {"seq": 1.5}, "seq: "),
        (scope_lines.TURN | {"role": "wizard"}, "role: "),
        (scope_lines.TURN | {"item": {"a": "\x00"}}, "NUL"),
        (scope_lines.TURN | {"created_at": "9999-12-31T23:59:59Z"}, "created_at: must lie"),
        (scope_lines.TURN | {"metadata": {"a": 1}}, "metadata"),
        (scope_lines.SESSION_LINE | {"id": "a/turns"}, "id: must not have a segment"),
        (scope_lines.SESSION_LINE | {"session_kind": "party"}, "kind: must be one of"),
        (scope_lines.SESSION_LINE | {"last_seq": 2**31 - 1}, "last_seq: must be 0 to"),
        (scope_lines.STATE_KEY | {"value": None}, "value: "),
        (scope_lines.STATE_KEY | {"value": [1]}, "value: must be true"),
        (scope_lines.STATE_KEY | {"owner_kind": "scratch"}, "owner_kind: must be"),
        (scope_lines.STATE_KEY | {"version": 2**62}, "version: must be a time"),
        (scope_lines.STATE_COLLECTION | {"data": "AAAA"}, ""),
        (scope_lines.STATE_COLLECTION | {"data": "%"}, "data: must be bytes"),
        (scope_lines.AGENT | {"identity": "0" * 64}, "identity: must be that"),
        (scope_lines.AGENT_FILE | {"name": "../x"}, "name: must be printable"),
        (scope_lines.PINNED_TEXT | {"content": "x" * 4001}, "content: must be at most"),
        (scope_lines.PLAYBOOK | {"reason": "applause"}, "reason: must be one of"),
        (scope_lines.PLAYBOOK | {"reason": "not_completed"}, "reason: must be not_completed if and only if"),
        (scope_lines.PLAYBOOK | {"tool_calls": [{"tool_id": "a tool"}]}, "tool_calls.0.tool_id: must be"),
    ],
)
async def test_a_line_that_breaks_a_rule_is_reported_and_stored_nowhere(
    stack: TenantStack, line: Line, rule: str
) -> None:
    report = await import_lines(stack, line)
    assert [item["line"] for item in report["malformed"]] == [1]
    assert rule in report["malformed"][0]["rule"]
    assert await export_lines(stack) == []


async def test_a_playbook_that_waits_for_its_user_waits_no_longer_elsewhere(stack: TenantStack) -> None:
    await import_lines(stack, scope_lines.PLAYBOOK | {"reason": "waiting"})
    assert [line["reason"] for line in await export_lines(stack)] == ["session_ended"]


async def test_a_session_that_is_over_is_neither_exported_nor_imported(stack: TenantStack) -> None:
    report = await import_lines(stack, scope_lines.SESSION_LINE | {"expires_at": scope_lines.T1})
    assert report["refused"][0]["rule"] == "the session is over"
    assert await export_lines(stack) == []


async def test_the_item_of_a_turn_keeps_every_digit(stack: TenantStack) -> None:
    item = '{"n":1.50,"big":123456789012345678901234567890,"e":1e400,"z":-0}'
    line = orjson.dumps({name: value for name, value in scope_lines.TURN.items() if name != "item"})

    async def chunks() -> AsyncIterator[bytes]:
        yield orjson.dumps(scope_lines.SESSION_LINE) + b"\n"
        yield line.removesuffix(b"}") + b',"item":' + item.encode() + b"}\n"

    await import_scope.import_scope(stack.resources, stack.caller, stack.scope(), chunks(), restore=False)
    lines = [line async for line in export_scope.export_turns(stack.resources, stack.caller, SESSION)]
    assert len(lines) == 1
    assert f'"item":{item}'.encode() in lines[0]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(errors.Invalid, match="kinds"):
        line_kinds.parse_kinds("memory,spend")
