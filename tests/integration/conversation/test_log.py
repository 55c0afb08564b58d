"""The log of a session: every turn by pages, its item as it was sent; edited, deleted, popped, cleared."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.agent import Agent
from tests.conftest import Gateway
from tests.idle_sessions import make_idle

SESSION = "trip"
TURNS = f"/v1/sessions/{SESSION}/turns"
# As it is written: big and exact numbers, the order of keys, and nulls.
ITEM = (
    '{"z":1.0,"a":[null,{"b":null}],"big":123456789012345678901234567890,"exact":0.12345678901234567890123,'
    '"far":1E+400,"minus":-0.0,"text":"ü\\n\\"","e":{}}'
)


@pytest.fixture
async def agent(gateway: Gateway) -> Agent:
    """An agent with a session that has the turns `1`, `2` and `3`."""
    agent = Agent(gateway.client, gateway.tenant)
    await agent.session(id=SESSION)
    turns = [{"role": "user", "content": str(number)} for number in (1, 2, 3)]
    await agent.request("POST", f"{TURNS}/batch", json={"turns": turns}, status=201)
    return agent


async def _seqs(agent: Agent, **params: Any) -> list[int]:
    return [turn["seq"] for turn in (await agent.request("GET", TURNS, params=params))["results"]]


async def _contents(agent: Agent) -> list[str]:
    return [turn["content"] for turn in (await agent.request("GET", TURNS))["results"]]


async def _post(client: httpx.AsyncClient, body: str, path: str = TURNS) -> httpx.Response:
    return await client.post(path, content=body, headers={"content-type": "application/json"})


def _with_item(item: str) -> str:
    return f'{{"role":"assistant","content":"x","item":{item}}}'


async def test_an_item_is_returned_as_it_was_sent(agent: Agent) -> None:
    turn = _with_item(ITEM)
    appended = await _post(agent.client, turn)
    assert appended.status_code == 201, appended.text
    batch = await _post(agent.client, f'{{"turns":[{{"role":"nobody"}},{turn}]}}', f"{TURNS}/batch")
    assert batch.status_code == 201, batch.text
    seqs = [appended.json()["seq"], batch.json()["results"][1]["seq"]]
    key = {"idempotency-key": "pop"}
    answers = [await agent.client.get(path) for path in (f"{TURNS}?last=1", f"{TURNS}?after_seq=4")]
    answers += [await agent.client.get(f"{TURNS}/{seq}") for seq in seqs]
    answers += [await agent.client.post(f"{TURNS}/pop", headers=key) for _ in range(2)]
    for answer in answers:
        assert f'"item":{ITEM}' in answer.text, answer.text


@pytest.mark.parametrize("item", ['{"a":NaN}', "[" * 400 + "]" * 400, json.dumps("x" * 256_000)])
async def test_an_item_that_is_no_json_or_too_much_is_refused(agent: Agent, item: str) -> None:
    response = await _post(agent.client, _with_item(item))
    assert response.status_code in {413, 422}, response.text
    assert response.json()["errors"][0]["field"] == "item"
    assert await _seqs(agent) == [1, 2, 3]


async def test_the_log_is_read_by_pages_in_both_directions_and_when_the_window_is_idle(
    agent: Agent, gateway: Gateway
) -> None:
    await make_idle(gateway, SESSION, idle_seconds=gateway.resources.settings.window_ttl + 1)
    assert await _seqs(agent) == []
    assert await _seqs(agent, after_seq=0) == [1, 2, 3]
    assert await _seqs(agent, after_seq=1, limit=1) == [2]
    assert await _seqs(agent, before_seq=3, limit=1) == [2]
    page = await agent.request("GET", TURNS, params={"limit": 2})
    assert [turn["seq"] for turn in page["results"]] == [1, 2]
    assert await _seqs(agent, cursor=page["next_cursor"], limit=2) == [3]
    for wrong in (
        {"last": 1, "limit": 1},
        {"after_seq": 1, "before_seq": 2},
        {"cursor": "x"},
        {"cursor": "9" * 40},
    ):
        await agent.request("GET", TURNS, params=wrong, status=422)


async def test_an_edit_is_a_new_version_everywhere_at_once(agent: Agent) -> None:
    before = (await agent.request("GET", f"{TURNS}/2")) | {"content": "two", "metadata": {"a": "b"}}
    edited = await agent.client.patch(f"{TURNS}/2", json={"content": "two", "metadata": {"a": "b"}})
    after = edited.json()
    assert after["version"] > before["version"]
    assert after["edited_at"] is not None
    assert after | {"version": 0, "edited_at": None} == before | {"version": 0, "edited_at": None}
    assert edited.headers["etag"] == f'"{after["version"]}"'
    assert await agent.request("GET", f"{TURNS}/2") == after
    assert await _contents(agent) == ["1", "two", "3"]
    assert (await agent.search_turn_contents("two"))[0] == "two"
    assert "2" not in await agent.search_turn_contents("2")
    assert await agent.request("PATCH", f"{TURNS}/2", json={"content": "two"}) == after, (
        "no change, no version"
    )


async def test_only_the_expected_version_is_changed_or_deleted(agent: Agent) -> None:
    version = (await agent.request("GET", f"{TURNS}/2"))["version"]
    old, current = {"if-match": '"1"'}, {"if-match": f'"{version}"'}
    for method, more in (("PATCH", {"json": {"content": "x"}}), ("DELETE", {})):
        await agent.request(method, f"{TURNS}/2", headers=old, status=412, **more)
    assert await _contents(agent) == ["1", "2", "3"]
    await agent.request("PATCH", f"{TURNS}/2", headers=current, json={"content": "x"})
    await agent.request("DELETE", f"{TURNS}/2", headers=current, status=412)
    await agent.request("DELETE", f"{TURNS}/2", headers={"if-match": "*"})
    await agent.request("DELETE", f"{TURNS}/2", headers={"if-match": "*"}, status=412)


@pytest.mark.parametrize(
    ("body", "status"),
    [({"content": " "}, 422), ({"content": None}, 422), ({"metadata": None}, 422), ({"role": "user"}, 422)],
)
async def test_a_bad_edit_changes_nothing(agent: Agent, body: dict[str, Any], status: int) -> None:
    before = await agent.request("GET", f"{TURNS}/2")
    await agent.request("PATCH", f"{TURNS}/2", json=body, status=status)
    assert await agent.request("GET", f"{TURNS}/2") == before


async def test_a_number_is_not_used_again(agent: Agent) -> None:
    assert (await agent.request("POST", f"{TURNS}/pop"))["turn"]["content"] == "3"
    assert await agent.append_turn(SESSION, "4") == 4
    assert (await agent.request("DELETE", f"{TURNS}/2"))["deleted"] is True
    assert (await agent.request("DELETE", f"{TURNS}/2"))["deleted"] is False
    await agent.request("GET", f"{TURNS}/2", status=404)
    await agent.request("PATCH", f"{TURNS}/2", json={"content": "x"}, status=404)
    assert await _contents(agent) == ["1", "4"]
    assert (await agent.request("DELETE", TURNS))["deleted"] == 2
    assert await agent.request("POST", f"{TURNS}/pop") == {"turn": None}
    assert await _contents(agent) == []
    assert await agent.append_turn(SESSION, "5") == 5
    assert await _contents(agent) == ["5"]


async def test_a_session_whose_turns_are_all_deleted_begins_anew(agent: Agent) -> None:
    memory = await agent.save("The harbour master is called Tilda.")
    assert (await agent.context(SESSION, "ok?"))["first_turn"] is False
    await agent.request("DELETE", TURNS)
    context = await agent.context(SESSION, "ok?")
    assert context["first_turn"] is True
    assert [recalled["id"] for recalled in context["recalled"]] == [memory["id"]], "the newest"


async def test_twenty_clients_with_lost_replies_pop_each_turn_once(agent: Agent) -> None:
    """Each sends its request twice with its key; one that meets a running one has to come back later."""
    turns = [{"role": "user", "content": f"n{number}"} for number in range(20)]
    await agent.request("POST", f"{TURNS}/batch", json={"turns": turns}, status=201)

    async def pop(number: int) -> int:
        while True:
            response = await agent.client.post(f"{TURNS}/pop", headers={"idempotency-key": f"k{number}"})
            if response.status_code not in {409, 503}:  # a twin is running, or all connections are in use
                return int(response.json()["turn"]["seq"])
            await asyncio.sleep(0.02)

    async def append(number: int) -> int:
        turn, headers = {"role": "user", "content": f"beside {number}"}, {"idempotency-key": f"a{number}"}
        while (response := await agent.client.post(TURNS, json=turn, headers=headers)).status_code == 503:
            pass
        return int(response.json()["seq"])

    first = asyncio.gather(*(pop(number) for number in range(20)))
    repeated = asyncio.gather(*(pop(number) for number in range(20)))
    appended = await asyncio.gather(*(append(number) for number in range(5)))
    popped = await first
    assert popped == await repeated
    assert len(set(popped)) == 20
    assert sorted({*popped, *await _seqs(agent, after_seq=0)}) == list(range(1, 29))
    assert await _seqs(agent) == await _seqs(agent, after_seq=0)
    assert sorted(appended) == list(range(24, 29))


async def test_three_thousand_turns_are_cleared_within_two_seconds(agent: Agent) -> None:
    turns = [{"role": "user", "content": f"the number {number}"} for number in range(999)]
    for _ in range(3):
        await agent.request("POST", f"{TURNS}/batch", json={"turns": turns}, status=201)
    started = asyncio.get_running_loop().time()
    assert (await agent.request("DELETE", TURNS))["deleted"] == 3000
    assert asyncio.get_running_loop().time() - started < 2
    assert await agent.search_turn_contents("number") == []
    assert await _seqs(agent, after_seq=0) == []


class OpenAiSession:
    """The `Session` of the OpenAI Agents SDK on these routes."""

    def __init__(self, agent: Agent, session_id: str) -> None:
        self._agent = agent
        self._path = f"/v1/sessions/{session_id}/turns"

    async def get_items(self, limit: int | None = None) -> list[Any]:
        items: list[Any] = []
        before = 2**31 - 1
        while limit is None or len(items) < limit:
            size = min(100, 100 if limit is None else limit - len(items))
            params = {"before_seq": before, "limit": size}
            page = (await self._agent.request("GET", self._path, params=params))["results"]
            if not page:
                break
            items = [turn["item"] for turn in page] + items
            before = page[0]["seq"]
        return items

    async def add_items(self, items: list[Any]) -> None:
        turns = [{"role": "assistant", "content": item["type"], "item": item} for item in items]
        await self._agent.request("POST", f"{self._path}/batch", json={"turns": turns}, status=201)

    async def pop_item(self) -> Any:
        turn = (await self._agent.request("POST", f"{self._path}/pop"))["turn"]
        return None if turn is None else turn["item"]

    async def clear_session(self) -> None:
        await self._agent.request("DELETE", self._path)


async def test_the_session_of_the_openai_agents_sdk_can_be_built_on_these_routes(agent: Agent) -> None:
    session = OpenAiSession(agent, await agent.session())
    items = [{"type": "function_call", "call_id": str(number), "arguments": None} for number in range(130)]
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(limit=110) == items[-110:]
    assert await session.pop_item() == items[-1]
    assert await session.get_items(limit=2) == items[-3:-1]
    await session.clear_session()
    assert await session.get_items() == []
    assert await session.pop_item() is None
