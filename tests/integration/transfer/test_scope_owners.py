"""An import is stored for its owner alone: ids of others, erased users, deleted sessions, what agents own."""

from types import ModuleType
from typing import Any

import pytest

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.lifecycle import delete_session, erasure
from shared.lifecycle.transfer import import_rows, import_scope, memory_lines
from shared.platform.resources import Resources
from tests.integration.transfer import scope_lines
from tests.integration.transfer.conftest import TenantStack, new_stack
from tests.integration.transfer.scope_lines import SESSION
from tests.integration.transfer.scopes import Line, export_lines, import_lines


async def test_ids_that_another_scope_uses_are_remapped_with_all_that_refers_to_them(
    stack: TenantStack,
) -> None:
    await import_lines(stack, *scope_lines.ALL)
    before, ada = await export_lines(stack), stack.scope(user="ada")
    report = await import_lines(stack, *scope_lines.OF_SCOPE, scope=ada)
    assert (report["created"], report["refused"]) == (len(scope_lines.OF_SCOPE), [])
    session_id = report["kinds"]["session"]["remapped"][SESSION]
    assert report["remapped"].keys() >= {SESSION, "aaaaaaaaaaaa", scope_lines.OBSERVATION["id"]}
    copies = {line["kind"]: line for line in await export_lines(stack, ada)}
    for kind in ("turn", "observation", "feedback_signal"):
        assert copies[kind]["session_id"] == session_id
    assert copies["state_key"]["owner_id"] == copies["transcript_entry"]["owner_id"] == session_id
    assert copies["memory"]["sources"][0]["session_id"] == session_id
    assert await export_lines(stack) == before
    repeated = await import_lines(stack, *scope_lines.OF_SCOPE, scope=ada)
    assert repeated["skipped"] == len(scope_lines.OF_SCOPE)


async def test_nobody_outside_a_tenant_can_tell_the_new_ids_in_advance(
    stack: TenantStack, resources: Resources
) -> None:
    new_ids = []
    async with new_stack(resources) as other:
        for tenant in (stack, other):
            await import_lines(tenant, *scope_lines.ALL)
            report = await import_lines(tenant, *scope_lines.OF_SCOPE, scope=tenant.scope(user="ada"))
            new_ids.append(report["remapped"])
    assert new_ids[0].keys() == new_ids[1].keys() > {SESSION, "aaaaaaaaaaaa"}
    assert not {*new_ids[0].values()} & {*new_ids[1].values()}


async def test_a_source_names_a_session_by_a_new_id_only_if_the_session_was_imported_with_it(
    stack: TenantStack,
) -> None:
    await import_lines(stack, *scope_lines.ALL)
    await import_lines(stack, scope_lines.MEMORY, scope=stack.scope(user="ada"))
    [memory] = await export_lines(stack, stack.scope(user="ada"))
    assert memory["sources"] == scope_lines.MEMORY["sources"]


@pytest.mark.parametrize(
    ("module", "step", "lines"),
    [
        (import_scope, "import_session", [scope_lines.SESSION_LINE]),
        (import_scope, "import_rows", [scope_lines.SESSION_LINE, scope_lines.TURN]),
        (memory_lines, "import_lines", [scope_lines.MEMORY]),
    ],
)
async def test_a_user_who_is_erased_while_an_import_runs_gets_nothing_more(
    stack: TenantStack, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str, lines: list[Line]
) -> None:
    ada, import_step = stack.scope(user="ada"), getattr(module, step)

    async def erase_first(*arguments: Any, **options: Any) -> None:
        await erasure.erase_user(stack.resources, stack.caller, "ada")
        await import_step(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, step, erase_first)
        with pytest.raises(errors.Conflict, match="erased meanwhile"):
            await import_lines(stack, *lines, scope=ada)
    assert await export_lines(stack, ada) == []


async def test_turns_of_a_session_that_was_deleted_meanwhile_are_refused(
    stack: TenantStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def delete_first(*arguments: Any) -> None:
        await delete_session.delete_session(stack.resources, stack.caller, SESSION)
        await import_rows.import_rows(*arguments)

    monkeypatch.setattr(import_scope, "import_rows", delete_first)
    report = await import_lines(stack, scope_lines.SESSION_LINE, scope_lines.TURN)
    assert report["refused"] == [{"line": 2, "kind": "turn", "rule": "its session is not there"}]
    assert await export_lines(stack) == []


async def test_what_belongs_to_the_agent_goes_only_with_its_own_scope_and_a_key_that_may(
    stack: TenantStack,
) -> None:
    await import_lines(stack, *scope_lines.ALL)
    ada = stack.scope(user="ada")
    of_agent = [*scope_lines.OF_AGENT, scope_lines.AGENT_KEY]
    report = await import_lines(stack, *of_agent, scope=ada)
    assert [item["line"] for item in report["refused"]] == [1, 2, 3, 4]
    bound = Caller("k", stack.tenant, frozenset({"read", "write"}), agent_id="a", user_id="ada")
    assert await export_lines(stack, ada, bound) == []
    kinds = {line["kind"] for line in await export_lines(stack, caller=bound)}
    assert kinds == {line["kind"] for line in scope_lines.OF_SCOPE}
    changed_file = scope_lines.AGENT_FILE | {"content_type": "text/plain"}
    report = await import_lines(stack, changed_file, caller=bound)
    assert (report["updated"], [item["line"] for item in report["refused"]]) == (0, [1])
