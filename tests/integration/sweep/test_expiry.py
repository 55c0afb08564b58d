"""LT18: a memory past its own expiry is deleted with every copy and without a tombstone, and no other."""

from shared.lifecycle import delete_memory
from tests.integration.sweep.stack import TestStack

FAR = "2999-01-01T00:00:00Z"


async def test_the_sweep_deletes_what_has_expired_with_every_copy_and_without_a_tombstone(
    stack: TestStack,
) -> None:
    expired = await stack.save("the lantern is red", expires_at=FAR)
    archived = await stack.save("the lantern is blue", expires_at=FAR)
    source = await stack.save("raw words of the red lantern")
    alive = await stack.save("the door is green", expires_at=FAR)
    session = await stack.open_session()
    body = {"message": "which lantern?"}
    context = await stack.client.post(f"/v1/sessions/{session}/context", json=body)
    assert "is red" in context.text
    await stack.client.post(f"/v1/memories/{archived}/archive")
    columns = "state = 'archived', archived_at = now(), superseded_by = ARRAY[:expired]"
    await stack.sql(f"UPDATE memory SET {columns} WHERE id = :id", id=source, expired=expired)  # noqa: S608
    await stack.sql(
        "UPDATE memory SET derived_from = ARRAY[:source] WHERE id = :id", id=expired, source=source
    )
    for memory_id in (expired, archived):
        await stack.backdate("memory", "expires_at", 0.001, id=memory_id)

    assert (await stack.sweep()).expired_memories == 2

    assert await stack.sql("SELECT id FROM memory") == [(alive,)]
    assert await stack.sql("SELECT DISTINCT memory_id FROM memory_history") == [(alive,)]
    # That of the archived one: a caller had archived it before.
    assert await stack.sql("SELECT memory_id FROM memory_tombstone") == [(archived,)]
    shown = await stack.client.post(f"/v1/sessions/{session}/context", json={"message": "and the door?"})
    assert "is red" not in shown.text
    await stack.process_all()
    assert {record_id for record_id, _ in await stack.points()} == {alive}
    assert (await stack.repairs())["expired_memories"] == 2
    assert await stack.save("the lantern is red") != expired


async def test_all_that_has_expired_goes_in_one_sweep_however_much_it_is(stack: TestStack) -> None:
    body = {"memories": [{"content": f"line {number}", "expires_at": FAR} for number in range(7)]}
    assert (await stack.client.post("/v1/memories/batch", json=body)).status_code == 201
    await stack.backdate("memory", "expires_at", 0.001, tenant=stack.tenant)
    async with stack.resources.transaction(stack.tenant) as tx:
        assert await delete_memory.delete_expired(tx, stack.resources, 5) == 5
    assert (await stack.sweep()).expired_memories == 2
