"""EN3: directives per tenant over HTTP: versions, history, and the way back to the file."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from shared.foundation import config
from shared.platform.directives import files
from tests.conftest import Gateway, serving
from tests.draining import drain
from tests.standins.models import ModelServer

Json = dict[str, Any]
MINE = "# Ours\n\nKeep only what concerns customers."


@pytest.fixture
async def house(
    make_settings: Callable[..., config.Settings], tenant: str, tmp_path: Path
) -> AsyncIterator[Gateway]:
    """A gateway whose operator has a file for `dream`."""
    (tmp_path / "dream.md").write_text("the operator's\n", encoding="utf-8")
    async with serving(make_settings(directives_dir=tmp_path), tenant) as served:
        yield served


async def _put(gateway: Gateway, text: str, name: str = "dream") -> Json:
    answer = await gateway.client.put(f"/v1/directives/{name}", json={"text": text})
    assert answer.status_code == 200, answer.text
    told: Json = answer.json()
    return told


async def _get(gateway: Gateway, path: str = "dream") -> Json:
    answer = await gateway.client.get(f"/v1/directives/{path}")
    assert answer.status_code == 200, answer.text
    told: Json = answer.json()
    return told


async def test_en3_the_tenants_text_goes_before_the_operators_file_and_that_before_the_built_in_one(
    house: Gateway,
) -> None:
    assert (await _get(house, "episodes"))["origin"] == "built-in"
    file = await _get(house)
    assert (file["text"], file["origin"], file["version"]) == (
        "the operator's",
        "file",
        file["digest"][:12],
    )
    assert await _put(house, MINE) == await _get(house)
    mine = await _get(house)
    assert (mine["text"], mine["origin"], mine["version"]) == (MINE, "tenant", "1")
    assert mine["digest"] != file["digest"]


@pytest.mark.parametrize("blank", ["", " \n\t"])
async def test_en3_a_blank_text_goes_back_to_the_file_and_history_keeps_what_stood(
    house: Gateway, blank: str
) -> None:
    file = await _get(house)
    await _put(house, MINE)
    assert await _put(house, blank) == file
    assert [one["text"] for one in (await _get(house, "dream/history"))["results"]] == ["", MINE]
    assert (await _put(house, MINE))["version"] == "3"


async def test_a_changed_file_counts_at_once_for_a_tenant_without_a_text_of_its_own(
    house: Gateway, tmp_path: Path
) -> None:
    before = await _get(house)
    (tmp_path / "dream.md").write_text("changed", encoding="utf-8")
    after = await _get(house)
    assert (after["text"], after["version"] == before["version"]) == ("changed", False)


async def test_history_tells_who_set_what_and_when_newest_first_in_pages(house: Gateway) -> None:
    for number in range(5):
        await _put(house, f"text {number}")
    first = await _get(house, "dream/history?limit=3")
    rest = await _get(house, f"dream/history?limit=3&cursor={first['next_cursor']}")
    told = [*first["results"], *rest["results"]]
    assert [(one["version"], one["text"]) for one in told] == [(n + 1, f"text {n}") for n in range(4, -1, -1)]
    assert rest["next_cursor"] is None
    assert len({one["actor"] for one in told}) == 1
    assert [one["created_at"] for one in told] == sorted((one["created_at"] for one in told), reverse=True)
    assert (await _get(house, "episodes/history"))["results"] == []


async def test_the_same_text_again_is_no_new_version(house: Gateway) -> None:
    await _put(house, "")
    for text in (MINE, MINE, f"\n{MINE}  "):
        assert (await _put(house, text))["version"] == "1"
    assert len((await _get(house, "dream/history"))["results"]) == 1


async def test_texts_set_at_the_same_moment_become_one_version_each(house: Gateway) -> None:
    await asyncio.gather(*(_put(house, f"text {number}") for number in range(8)))
    versions = (await _get(house, "dream/history"))["results"]
    assert [one["version"] for one in versions] == list(range(8, 0, -1))
    assert (await _get(house))["text"] == versions[0]["text"]


async def test_the_list_names_every_directive_and_where_its_text_comes_from(house: Gateway) -> None:
    await _put(house, MINE, "pref-dream")
    listed = (await house.client.get("/v1/directives")).json()["results"]
    origins = {one["name"]: one["origin"] for one in listed}
    assert list(origins) == files.names()
    assert (origins["dream"], origins["pref-dream"], origins["episodes"]) == ("file", "tenant", "built-in")
    assert "text" not in listed[0]


@pytest.mark.parametrize("name", ["dreams", "dream.md", "..%2Fdream", "memory_rules"])
async def test_an_unknown_name_is_not_found_and_the_answer_names_the_known_ones(
    house: Gateway, name: str
) -> None:
    for method, path in (("GET", ""), ("PUT", ""), ("GET", "/history")):
        body = {"text": "x"} if method == "PUT" else None
        answer = await house.client.request(method, f"/v1/directives/{name}{path}", json=body)
        assert answer.status_code == 404
        assert "%2F" in name or "memory-rules" in answer.text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"text": "x" * 100_001}, 413),
        ({"text": None}, 422),
        ({}, 422),
        ({"text": "nul \x00"}, 422),
        ({"text": "x", "version": 3}, 422),
    ],
)
async def test_a_bad_text_is_refused_and_nothing_is_stored(house: Gateway, body: Json, status: int) -> None:
    answer = await house.client.put("/v1/directives/dream", json=body)
    assert answer.status_code == status, answer.text
    assert (await _get(house, "dream/history"))["results"] == []


async def test_the_longest_text_that_is_allowed_comes_back_whole(house: Gateway) -> None:
    assert (await _put(house, "ж" * 100_000))["text"] == "ж" * 100_000


async def test_only_an_unbound_admin_sets_a_directive(house: Gateway) -> None:
    keys: list[Json] = [
        {"rights": frozenset({"read", "write"})},
        {"agent_id": "a"},
        {"user_id": "ada"},
        {"namespace": "session/x"},
    ]
    for bound in keys:
        async with await house.another(**bound) as client:
            refused = await client.put("/v1/directives/dream", json={"text": MINE})
            assert refused.status_code == 403, bound
            assert (await client.get("/v1/directives/dream")).json()["origin"] == "file"


async def test_another_tenants_text_is_not_mine(house: Gateway) -> None:
    await _put(house, MINE)
    async with await house.another(f"{house.tenant}-other") as client:
        assert (await client.get("/v1/directives/dream")).json()["text"] == "the operator's"
        assert (await client.get("/v1/directives/dream/history")).json()["results"] == []
        own = await client.put("/v1/directives/dream", json={"text": "theirs"})
        assert own.json()["version"] == "1"
    assert (await _get(house))["text"] == MINE


async def test_en3_enrichment_follows_the_tenants_rules_from_the_next_run_on(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> None:
    settings = make_settings(apart=True, llm_base_url=models.url, llm_model="m")
    async with serving(settings, tenant) as gateway:
        for rules in (None, MINE):
            if rules is not None:
                await _put(gateway, rules, "memory-rules")
            await gateway.client.post("/v1/memories", json={"content": f"a fact under {rules}"})
            await drain(gateway.resources)
    before, after = [call.prompt for call in models.chat_calls]
    assert "# Rules for long-term memory" in before
    assert MINE in after
    assert "# Rules for long-term memory" not in after
