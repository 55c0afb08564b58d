"""LT13, LT14: only an import that restores brings back a preference or a playbook that a caller deleted."""

from typing import Any

import pytest

from shared.foundation import errors
from shared.lifecycle import delete_memory, delete_playbook, delete_preference
from shared.memory.playbooks import record
from shared.memory.playbooks.playbook import PlaybookDraft
from shared.memory.playbooks.record import Place
from shared.memory.preferences import read, write
from shared.memory.preferences.preference import Condition, Effect, PreferenceDraft
from tests.integration.transfer import scope_lines
from tests.integration.transfer.conftest import TenantStack
from tests.integration.transfer.scope_lines import PLAYBOOK, PREFERENCE
from tests.integration.transfer.scopes import Line, export_lines, import_lines

KEY, ID = str(PREFERENCE["key"]), str(PLAYBOOK["id"])
QUERY = str(PLAYBOOK["user_query"])
OTHER_ID = "01890000-0000-7000-8000-00000000000f"


async def imported(stack: TenantStack, *lines: Line, **options: Any) -> tuple[int, list[str]]:
    """Import lines; return how many were created, and what was deleted before."""
    report = await import_lines(stack, *lines, **options)
    by_kind = [key for part in report["kinds"].values() for key in part["tombstoned"]]
    assert report["tombstoned"] == by_kind
    return report["created"], report["tombstoned"]


async def delete(stack: TenantStack) -> None:
    """Delete the preference and the playbook of the lines."""
    assert await delete_preference.delete_preference(stack.resources, stack.scope(), KEY)
    assert await delete_playbook.delete_playbook(stack.resources, stack.caller, ID)


async def test_what_was_deleted_is_reported_and_comes_back_only_with_restore(stack: TenantStack) -> None:
    assert await imported(stack, PREFERENCE, PLAYBOOK) == (2, [])
    await delete(stack)
    assert await imported(stack, PREFERENCE, PLAYBOOK) == (0, [ID, KEY])
    assert await export_lines(stack) == []
    in_other_scope = stack.scope(user="bob")
    assert await imported(stack, PREFERENCE, scope=in_other_scope) == (1, [])
    assert await imported(stack, PREFERENCE, PLAYBOOK, restore=True) == (2, [])
    # From then on it is as if it had never been deleted.
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        await tx.connection.exec_driver_sql("DELETE FROM preference")
        await tx.connection.exec_driver_sql("DELETE FROM playbook")
    assert await imported(stack, PREFERENCE, PLAYBOOK) == (2, [])


async def test_a_playbook_stays_deleted_under_another_id_and_a_deleted_id_with_another_query(
    stack: TenantStack,
) -> None:
    await imported(stack, PLAYBOOK)
    await delete_playbook.delete_playbook(stack.resources, stack.caller, ID)
    same_query = PLAYBOOK | {"id": OTHER_ID, "user_query": f"  {QUERY.upper()}"}
    assert await imported(stack, same_query) == (0, [OTHER_ID])
    assert await imported(stack, PLAYBOOK | {"user_query": "Another."}) == (0, [ID])
    assert await imported(stack, PLAYBOOK | {"id": OTHER_ID, "user_query": "Another."}) == (1, [])


async def test_a_deleted_query_of_light_words_alone_stays_deleted_in_other_case(stack: TenantStack) -> None:
    await imported(stack, PLAYBOOK | {"user_query": "Please,  really."})
    await delete_playbook.delete_playbook(stack.resources, stack.caller, ID)
    repeated = PLAYBOOK | {"id": OTHER_ID, "user_query": "please, REALLY."}
    assert await imported(stack, repeated) == (0, [OTHER_ID])


async def test_the_query_of_a_playbook_that_stays_is_not_deleted(stack: TenantStack) -> None:
    await imported(stack, PLAYBOOK, PLAYBOOK | {"id": OTHER_ID})
    await delete_playbook.delete_playbook(stack.resources, stack.caller, ID)
    third = PLAYBOOK | {"id": "01890000-0000-7000-8000-000000000010"}
    assert await imported(stack, PLAYBOOK, third) == (1, [ID])


async def test_a_rule_that_says_something_else_is_imported(stack: TenantStack) -> None:
    await imported(stack, PREFERENCE)
    await delete_preference.delete_preference(stack.resources, stack.scope(), KEY)
    assert await imported(stack, PREFERENCE | {"flow": "analyze", "template": "In\n  VERSE."}) == (0, [KEY])
    assert await imported(stack, PREFERENCE | {"value": {"pages": [1, 2.0]}}) == (1, [])


@pytest.mark.parametrize(
    ("value", "repeated"),
    [
        ("deep", "DEEP "),
        (" deep  dive", "Deep\nDive"),
        (["deep", {"Tone": "dry"}], ["DEEP", {"tone ": " Dry"}]),
    ],
    ids=["case and a space", "line break", "nested"],
)
async def test_case_and_white_space_of_a_value_hide_no_deleted_rule(
    stack: TenantStack, value: object, repeated: object
) -> None:
    await imported(stack, PREFERENCE | {"value": value})
    await delete_preference.delete_preference(stack.resources, stack.scope(), KEY)
    assert await imported(stack, PREFERENCE | {"value": repeated}) == (0, [KEY])


async def test_whoever_writes_it_again_lifts_the_tombstone(stack: TenantStack) -> None:
    await imported(stack, PREFERENCE, PLAYBOOK)
    await delete(stack)
    rule = PreferenceDraft(
        condition=Condition(flow="report", description=str(PREFERENCE["description"])),
        effect=Effect(slot="length", value=PREFERENCE["value"], template="In verse."),
    )
    await write.put(stack.resources, stack.caller, stack.scope(), KEY, rule)
    draft = PlaybookDraft(flow_dact="f", slots={}, tool_calls=(), outcome="success", user_query=QUERY)
    await record.record(stack.resources, stack.caller, Place("a"), draft.validated())
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        await tx.connection.exec_driver_sql("DELETE FROM preference")
        await tx.connection.exec_driver_sql("DELETE FROM playbook")
    with_other_id = PLAYBOOK | {"id": OTHER_ID}
    assert await imported(stack, PREFERENCE, PLAYBOOK, with_other_id) == (2, [ID])


@pytest.mark.parametrize("field", ["description", "template", "value"])
async def test_what_says_the_text_of_a_deleted_memory_is_not_imported(stack: TenantStack, field: str) -> None:
    await import_lines(stack, *scope_lines.ALL)
    [content] = [line["content"] for line in scope_lines.ALL if line.get("id") == "aaaaaaaaaaaa"]
    await delete_memory.delete_memory(stack.resources, stack.caller, "aaaaaaaaaaaa")
    rule = PREFERENCE | {"key": "learnt", field: content}
    asked = PLAYBOOK | {"id": OTHER_ID, "user_query": content}
    assert await imported(stack, rule, asked) == (0, [OTHER_ID, "learnt"])


async def test_an_import_gives_no_permission_and_sees_which_rules_need_one(stack: TenantStack) -> None:
    rule = PREFERENCE | {"requires_user_permission": False, "template": "Pay every invoice."}
    await imported(stack, rule, PREFERENCE | {"key": "plain", "requires_user_permission": False})
    lines = {line["key"]: line["requires_user_permission"] for line in await export_lines(stack)}
    assert lines == {KEY: True, "plain": False}


async def test_a_value_of_another_json_type_is_another_value(stack: TenantStack) -> None:
    await imported(stack, PREFERENCE | {"value": 1})
    for value in (True, 1.0):
        report = await import_lines(stack, PREFERENCE | {"value": value})
        assert report["kinds"]["preference"]["kept"] == [KEY]


async def test_what_was_learnt_goes_on_with_its_memory_under_the_id_that_this_has_here(
    stack: TenantStack,
) -> None:
    await imported(stack, scope_lines.MEMORY)  # so that the id is taken
    bob = stack.scope(user="bob")
    await imported(stack, scope_lines.MEMORY, PREFERENCE, scope=bob)
    own = await read.get(stack.resources, bob, KEY)
    assert own.memory_id not in {None, "aaaaaaaaaaaa"}
    await delete_memory.delete_memory(stack.resources, stack.caller, str(own.memory_id))
    with pytest.raises(errors.NotFound):
        await read.get(stack.resources, bob, KEY)


async def test_without_its_memory_a_rule_stands_by_itself(stack: TenantStack) -> None:
    await imported(stack, PREFERENCE)
    alone = await read.get(stack.resources, stack.scope(), KEY)
    assert (alone.memory_id, alone.is_suspended) == (None, False)
    own = PREFERENCE | {"key": "own", "origin": "explicit"}
    await imported(stack, scope_lines.MEMORY, own)
    assert (await read.get(stack.resources, stack.scope(), "own")).memory_id is None
    assert (await import_lines(stack, PREFERENCE))["skipped"] == 1
