"""LT6, Errors: every script and emoji is stored, shown unchanged, and found by a query in it."""

from uuid import uuid4

import pytest

from tests.badinput.conftest import Door

SAID = [
    ("emoji", "The launch went well 🚀🎉, said 👩‍👩‍👧", "🚀"),
    ("cyrillic", "Аде нравятся поезда, а не самолёты", "поезда"),  # noqa: RUF001
    ("chinese", "艾达喜欢坐火车而不是飞机", "火车"),
    ("japanese", "アダは飛行機より電車が好きです", "電車"),
    ("thai", "เอด้าชอบรถไฟมากกว่าเครื่องบิน", "รถไฟ"),
    ("arabic", "تفضل آدا القطارات على الطائرات", "القطارات"),
    ("hebrew", "עדה מעדיפה רכבות על מטוסים", "רכבות"),
    ("hindi", "एडा को रेलगाड़ी पसंद है", "रेलगाड़ी"),
    ("korean", "에이다는 비행기보다 기차를 좋아한다", "기차"),
    ("accents", "Élodie préfère le café à Zürich", "préfère"),
    ("beyond the first plane", "𝒜𝒹𝒶 wrote 𠮷野家 down", "𠮷野家"),  # noqa: RUF001
]
every_script = pytest.mark.parametrize(
    ("text", "query"), [one[1:] for one in SAID], ids=[one[0] for one in SAID]
)


@every_script
async def test_a_memory_in_any_script_is_kept_unchanged_and_found(door: Door, text: str, query: str) -> None:
    scope = {"agent_id": uuid4().hex}
    decoy = {"content": "Something else altogether, in plain words", **scope}
    assert (await door.client.post("/v1/memories", json=decoy)).status_code == 201
    fact = {"content": text, "tags": [query], "metadata": {"said": text}, **scope}
    saved = await door.client.post("/v1/memories", json=fact)
    assert saved.status_code == 201, saved.text
    assert (saved.json()["content"], saved.json()["tags"]) == (text, [query])
    found = (await door.client.post("/v1/memories/search", json={"query": query, **scope})).json()
    assert [one["content"] for one in found["results"]] == [text]
    by_tag = await door.client.get("/v1/memories", params={"tag": query, **scope})
    assert [one["content"] for one in by_tag.json()["results"]] == [text]


@every_script
async def test_a_turn_and_a_desk_entry_in_any_script_are_found(door: Door, text: str, query: str) -> None:
    name = f"s-{uuid4().hex[:8]}"
    await door.client.post("/v1/sessions", json={"id": name, "agent_id": name})
    said = {"role": "user", "content": text, "speaker": query}
    assert (await door.client.post(f"/v1/sessions/{name}/turns", json=said)).status_code == 201
    found = await door.client.post("/v1/turns/search", json={"query": query, "agent_id": name})
    assert [one["content"] for one in found.json()["results"]] == [text]
    entry = {"value": text, "tags": [query]}
    assert (await door.client.put(f"/v1/working/session/{name}/note", json=entry)).status_code == 200
    asked = {"query": query, "prefix": f"session/{name}"}
    desk = await door.client.post("/v1/working/search", json=asked)
    assert [one["value"] for one in desk.json()["results"]] == [text]


@every_script
async def test_a_context_in_any_script_recalls_it(door: Door, text: str, query: str) -> None:
    name = f"s-{uuid4().hex[:8]}"
    await door.client.post("/v1/memories", json={"content": text, "agent_id": name})
    await door.client.post("/v1/sessions", json={"id": name, "agent_id": name})
    told = await door.client.post(f"/v1/sessions/{name}/context", json={"message": query, "system": text})
    assert [one["content"] for one in told.json()["recalled"]] == [text]
    assert told.json()["messages"][0]["content"] == text
    assert told.json()["messages"][-1]["content"] == query


async def test_an_account_may_be_an_address_in_any_script(door: Door) -> None:
    fact = {"content": "an account of any script", "agent_id": "помощник", "user_id": "アダ@例え.jp"}
    assert (await door.client.post("/v1/memories", json=fact)).status_code == 201
    asked = {"agent_id": fact["agent_id"], "user_id": fact["user_id"]}
    listed = await door.client.get("/v1/memories", params=asked)
    assert [one["content"] for one in listed.json()["results"]] == [fact["content"]]


async def test_a_query_of_nothing_but_symbols_is_answered(door: Door) -> None:
    for query in ("🚀", "👩‍👩‍👧", "…", "?!", "\u200d"):
        for path in ("/v1/memories/search", "/v1/turns/search", "/v1/working/search"):
            answer = await door.client.post(path, json={"query": query})
            assert answer.status_code == 200, answer.text
