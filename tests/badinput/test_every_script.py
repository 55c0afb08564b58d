"""Texts in every script, and emoji, are stored, returned unchanged, and found by a query in it (LT6)."""

from uuid import uuid4

import pytest

from tests.badinput.conftest import CheckedGateway

SAMPLES = [
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
    ("text", "query"), [sample[1:] for sample in SAMPLES], ids=[sample[0] for sample in SAMPLES]
)


@every_script
async def test_a_memory_in_any_script_is_stored_unchanged_and_found(
    gateway: CheckedGateway, text: str, query: str
) -> None:
    scope = {"agent_id": uuid4().hex}
    decoy = {"content": "Something else altogether, in plain words", **scope}
    assert (await gateway.client.post("/v1/memories", json=decoy)).status_code == 201
    memory = {"content": text, "tags": [query], "metadata": {"said": text}, **scope}
    saved = await gateway.client.post("/v1/memories", json=memory)
    assert saved.status_code == 201, saved.text
    assert (saved.json()["content"], saved.json()["tags"]) == (text, [query])
    hits = (await gateway.client.post("/v1/memories/search", json={"query": query, **scope})).json()
    assert [memory["content"] for memory in hits["results"]] == [text]
    by_tag = await gateway.client.get("/v1/memories", params={"tag": query, **scope})
    assert [memory["content"] for memory in by_tag.json()["results"]] == [text]


@every_script
async def test_a_turn_and_a_working_memory_entry_in_any_script_are_found(
    gateway: CheckedGateway, text: str, query: str
) -> None:
    name = f"s-{uuid4().hex[:8]}"
    await gateway.client.post("/v1/sessions", json={"id": name, "agent_id": name})
    turn = {"role": "user", "content": text, "speaker": query}
    assert (await gateway.client.post(f"/v1/sessions/{name}/turns", json=turn)).status_code == 201
    hits = await gateway.client.post("/v1/turns/search", json={"query": query, "agent_id": name})
    assert [turn["content"] for turn in hits.json()["results"]] == [text]
    entry = {"value": text, "tags": [query]}
    assert (await gateway.client.put(f"/v1/working/session/{name}/note", json=entry)).status_code == 200
    search = {"query": query, "prefix": f"session/{name}"}
    entries = await gateway.client.post("/v1/working/search", json=search)
    assert [entry["value"] for entry in entries.json()["results"]] == [text]


@every_script
async def test_a_context_in_any_script_recalls_it(gateway: CheckedGateway, text: str, query: str) -> None:
    name = f"s-{uuid4().hex[:8]}"
    await gateway.client.post("/v1/memories", json={"content": text, "agent_id": name})
    await gateway.client.post("/v1/sessions", json={"id": name, "agent_id": name})
    context = await gateway.client.post(
        f"/v1/sessions/{name}/context", json={"message": query, "system": text}
    )
    assert [memory["content"] for memory in context.json()["recalled"]] == [text]
    assert context.json()["messages"][0]["content"] == text
    assert context.json()["messages"][-1]["content"] == query


async def test_an_agent_or_user_id_may_be_an_address_in_any_script(gateway: CheckedGateway) -> None:
    memory = {"content": "an account of any script", "agent_id": "помощник", "user_id": "アダ@例え.jp"}
    assert (await gateway.client.post("/v1/memories", json=memory)).status_code == 201
    scope = {"agent_id": memory["agent_id"], "user_id": memory["user_id"]}
    listing = await gateway.client.get("/v1/memories", params=scope)
    assert [result["content"] for result in listing.json()["results"]] == [memory["content"]]


async def test_a_query_of_nothing_but_symbols_is_answered(gateway: CheckedGateway) -> None:
    for query in ("🚀", "👩‍👩‍👧", "…", "?!", "\u200d"):
        for path in ("/v1/memories/search", "/v1/turns/search", "/v1/working/search"):
            response = await gateway.client.post(path, json={"query": query})
            assert response.status_code == 200, response.text
