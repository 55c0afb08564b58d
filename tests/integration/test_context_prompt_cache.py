"""CX7, LT11: what consecutive contexts of a session have in common, with real stores."""

import asyncio
import random
from itertools import pairwise

from sqlalchemy import select

from shared.conversation.sessions.table import session as session_table
from tests.agent import Agent, Json, count_occurrences, random_word, recalled_ids
from tests.conftest import Gateway
from tests.idle_sessions import make_idle

TOPICS = ["harbour", "lantern", "orchard", "tower", "ferry", "violin"]


def stable_part(context: Json) -> list[Json]:
    """Return the messages before the first volatile block: each block after it is one message."""
    volatile = [block for block in context["blocks"] if block["stability"] == "volatile"]
    return list(context["messages"][: len(context["messages"]) - 1 - len(volatile)])


def replayed(context: Json) -> list[str]:
    """Return the contents of the turns before the current message; turns of the tests begin with `#`."""
    return [message["content"] for message in context["messages"][:-1] if message["content"][0] == "#"]


async def window_start(gateway: Gateway, session: str) -> int:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        column = select(session_table.c.window_start).where(session_table.c.id == session)
        return int(await tx.scalar(column) or 0)


async def test_cx7_each_context_begins_with_the_one_before_and_its_message(
    agent: Agent, gateway: Gateway
) -> None:
    """Contexts alone and several at once, retries, previews, replies, new memories and working memory."""
    drawn = random.Random(1)
    session = await agent.session()
    await agent.request("PUT", "/v1/pinned/persona", json={"content": "Kind.\nAnd short."})
    contexts: list[Json] = []
    starts: dict[int, int] = {}

    async def ask(number: int, attempt: str = "") -> None:
        message = f"# {number}{attempt} of the {drawn.choice(TOPICS)} and the {drawn.choice(TOPICS)}"
        key, tries = random_word(), drawn.choice([1, 2])
        built = [await agent.context(session, message, idempotency_key=key) for _ in range(tries)]
        assert built[0] == built[-1]
        contexts.append(built[0])

    for number in range(20):
        topic = drawn.choice(TOPICS)
        await agent.save(f"The {topic} has the number {drawn.randrange(10**6)}.")
        await agent.put(f"session/{session}/{topic}", "a value", ttl_seconds=600)
        if drawn.random() < 0.3:
            await agent.context(session, f"# a preview of the {topic}", record_turn=False)
        await asyncio.gather(*(ask(number, f" ({n})") for n in range(drawn.choice([1, 1, 1, 3]))))
        await agent.append_turn(session, f"# reply {number}")
        starts[max(context["seq"] for context in contexts)] = await window_start(gateway, session)
    contexts.sort(key=lambda context: int(context["seq"]))
    same_start = 0
    for first, second in pairwise(contexts):
        assert all(count_occurrences(second, f"[{memory}]") == 1 for memory in recalled_ids(second))
        assert len(replayed(second)) < 30
        if replayed(first)[:1] == replayed(second)[:1] or not replayed(first):
            expected = [*stable_part(first), first["messages"][-1]]
            assert second["messages"][: len(expected)] == expected
            same_start += 1
    steps = len(contexts) - 1 - same_start
    assert 1 <= steps <= contexts[-1]["seq"] // 10
    assert sorted(set(starts.values())) == [0, *(1 + 10 * n for n in range(1, len(set(starts.values()))))]


async def test_cx7_the_start_moves_by_ten_when_thirty_turns_stand_and_counts_a_batch_at_once(
    agent: Agent,
) -> None:
    session = await agent.session()
    for number in range(1, 29):
        await agent.append_turn(session, f"# {number}")
    numbers = {29: 29, 30: 20, 31: 21, 39: 29, 40: 20}
    for number in range(29, 41):
        await agent.append_turn(session, f"# {number}")
        if number in numbers:
            context = await agent.context(session, "now?", record_turn=False)
            assert replayed(context) == [f"# {n}" for n in range(number - numbers[number] + 1, number + 1)]
    turns = [{"role": "user", "content": f"# {number}"} for number in range(41, 141)]
    path = f"/v1/sessions/{session}/turns/batch"
    await agent.request("POST", path, json={"turns": turns}, status=201)
    context = await agent.context(session, "now?", record_turn=False)
    assert replayed(context) == [f"# {number}" for number in range(121, 141)]


async def test_cx7_a_deleted_turn_brings_back_none_from_before_the_start(agent: Agent) -> None:
    session = await agent.session()
    for number in range(1, 32):
        await agent.append_turn(session, f"# {number}")
    await agent.request("DELETE", f"/v1/sessions/{session}/turns/20")
    context = await agent.context(session, "now?", record_turn=False)
    assert replayed(context) == [f"# {number}" for number in range(11, 32) if number != 20]


async def test_cx7_a_message_that_was_reported_as_a_turn_before_is_no_different(agent: Agent) -> None:
    """Nothing is stored with such a turn, so what it recalls is not repeated: it is volatile."""
    await agent.save("The harbour is to the north.")
    session = await agent.session()
    await agent.append_turn(session, "# where is the harbour?", role="user")
    first = await agent.context(session, "# where is the harbour?", record_turn=False)
    assert [(block["kind"], block["stability"]) for block in first["blocks"]] == [("recalled", "volatile")]
    await agent.append_turn(session, "# to the north")
    await agent.append_turn(session, "# thank you", role="user")
    second = await agent.context(session, "# thank you", record_turn=False)
    expected = [*stable_part(first), first["messages"][-1]]
    assert second["messages"][: len(expected)] == expected


async def test_lt11_a_memory_whose_turn_fell_out_of_the_window_is_armed_again(agent: Agent) -> None:
    saved = await agent.save("The lighthouse keeper is called Marn.")
    session = await agent.session()
    question = "# who is the lighthouse keeper?"
    assert recalled_ids(await agent.context(session, question)) == [saved["id"]]
    for number in range(28):
        await agent.append_turn(session, f"# {number}")
    at_the_end = await agent.context(session, question)
    assert (recalled_ids(at_the_end), count_occurrences(at_the_end, saved["id"])) == ([], 1)
    after_the_step = await agent.context(session, question)
    assert (recalled_ids(after_the_step), count_occurrences(after_the_step, saved["id"])) == (
        [saved["id"]],
        1,
    )


async def test_cx7_an_edited_memory_leaves_its_older_line_even_when_nothing_recalls_it(agent: Agent) -> None:
    """Forgetting beats the cache."""
    saved = await agent.save("The well is forty feet deep.")
    session = await agent.session()
    await agent.context(session, "# how deep is the well?")
    await agent.request(
        "PATCH", f"/v1/memories/{saved['id']}", json={"content": "The well is sixty feet deep."}
    )
    context = await agent.context(session, "# zzyzx")
    assert (recalled_ids(context), count_occurrences(context, "forty")) == ([], 0)


async def test_cv1_after_idleness_the_window_begins_with_the_new_turn_and_stays_there(
    agent: Agent, gateway: Gateway
) -> None:
    session = await agent.session()
    await agent.append_turn(session, "# of yesterday")
    await make_idle(gateway, session, idle_seconds=gateway.resources.settings.window_ttl + 60)
    first = await agent.context(session, "# hello again")
    second = await agent.context(session, "# and again")
    assert (replayed(first), replayed(second)) == ([], ["# hello again"])
