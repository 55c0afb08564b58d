"""EN3: directives of a tenant over HTTP: versions, history, and going back to the file."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from shared.foundation import config
from shared.platform.directives import files
from tests.conftest import Gateway, running_gateway
from tests.draining import drain
from tests.standins.models import ModelServer

Json = dict[str, Any]
TENANT_TEXT = "# Ours\n\nKeep only what concerns customers."


@pytest.fixture
async def gateway(
    make_settings: Callable[..., config.Settings], tenant: str, tmp_path: Path
) -> AsyncIterator[Gateway]:
    """Start a gateway whose operator has a file for `dream`."""
    (tmp_path / "dream.md").write_text("the operator's\n", encoding="utf-8")
    async with running_gateway(make_settings(directives_dir=tmp_path), tenant) as opened_gateway:
        yield opened_gateway


async def _put(gateway: Gateway, text: str, name: str = "dream") -> Json:
    response = await gateway.client.put(f"/v1/directives/{name}", json={"text": text})
    assert response.status_code == 200, response.text
    payload: Json = response.json()
    return payload


async def _get(gateway: Gateway, path: str = "dream") -> Json:
    response = await gateway.client.get(f"/v1/directives/{path}")
    assert response.status_code == 200, response.text
    payload: Json = response.json()
    return payload


async def test_en3_the_tenants_text_goes_before_the_operators_file_and_that_before_the_built_in_one(
    gateway: Gateway,
) -> None:
    assert (await _get(gateway, "episodes"))["origin"] == "built-in"
    file = await _get(gateway)
    assert (file["text"], file["origin"], file["version"]) == (
        "the operator's",
        "file",
        file["digest"][:12],
    )
    assert await _put(gateway, TENANT_TEXT) == await _get(gateway)
    own = await _get(gateway)
    assert (own["text"], own["origin"], own["version"]) == (TENANT_TEXT, "tenant", "1")
    assert own["digest"] != file["digest"]


@pytest.mark.parametrize("blank", ["", " \n\t"])
async def test_en3_a_blank_text_goes_back_to_the_file_and_history_keeps_the_earlier_text(
    gateway: Gateway, blank: str
) -> None:
    file = await _get(gateway)
    await _put(gateway, TENANT_TEXT)
    assert await _put(gateway, blank) == file
    assert [version["text"] for version in (await _get(gateway, "dream/history"))["results"]] == [
        "",
        TENANT_TEXT,
    ]
    assert (await _put(gateway, TENANT_TEXT))["version"] == "3"


async def test_a_changed_file_counts_at_once_for_a_tenant_without_a_text_of_its_own(
    gateway: Gateway, tmp_path: Path
) -> None:
    old = await _get(gateway)
    (tmp_path / "dream.md").write_text("changed", encoding="utf-8")
    new = await _get(gateway)
    assert (new["text"], new["version"] == old["version"]) == ("changed", False)


async def test_history_lists_texts_actors_and_times_newest_first_in_pages(gateway: Gateway) -> None:
    for number in range(5):
        await _put(gateway, f"text {number}")
    first_page = await _get(gateway, "dream/history?limit=3")
    second_page = await _get(gateway, f"dream/history?limit=3&cursor={first_page['next_cursor']}")
    versions = [*first_page["results"], *second_page["results"]]
    assert [(version["version"], version["text"]) for version in versions] == [
        (n + 1, f"text {n}") for n in range(4, -1, -1)
    ]
    assert second_page["next_cursor"] is None
    assert len({version["actor"] for version in versions}) == 1
    assert [version["created_at"] for version in versions] == sorted(
        (version["created_at"] for version in versions), reverse=True
    )
    assert (await _get(gateway, "episodes/history"))["results"] == []


async def test_the_same_text_again_is_no_new_version(gateway: Gateway) -> None:
    await _put(gateway, "")
    for text in (TENANT_TEXT, TENANT_TEXT, f"\n{TENANT_TEXT}  "):
        assert (await _put(gateway, text))["version"] == "1"
    assert len((await _get(gateway, "dream/history"))["results"]) == 1


async def test_texts_set_at_the_same_moment_become_one_version_each(gateway: Gateway) -> None:
    await asyncio.gather(*(_put(gateway, f"text {number}") for number in range(8)))
    versions = (await _get(gateway, "dream/history"))["results"]
    assert [version["version"] for version in versions] == list(range(8, 0, -1))
    assert (await _get(gateway))["text"] == versions[0]["text"]


async def test_the_list_names_every_directive_and_where_its_text_comes_from(gateway: Gateway) -> None:
    await _put(gateway, TENANT_TEXT, "pref-dream")
    directives = (await gateway.client.get("/v1/directives")).json()["results"]
    origins = {result["name"]: result["origin"] for result in directives}
    assert list(origins) == files.names()
    assert (origins["dream"], origins["pref-dream"], origins["episodes"]) == ("file", "tenant", "built-in")
    assert "text" not in directives[0]


@pytest.mark.parametrize("name", ["dreams", "dream.md", "..%2Fdream", "memory_rules"])
async def test_an_unknown_name_is_not_found_and_the_answer_names_the_known_ones(
    gateway: Gateway, name: str
) -> None:
    for method, path in (("GET", ""), ("PUT", ""), ("GET", "/history")):
        body = {"text": "x"} if method == "PUT" else None
        response = await gateway.client.request(method, f"/v1/directives/{name}{path}", json=body)
        assert response.status_code == 404
        assert "%2F" in name or "memory-rules" in response.text


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
async def test_a_bad_text_is_refused_and_nothing_is_stored(gateway: Gateway, body: Json, status: int) -> None:
    response = await gateway.client.put("/v1/directives/dream", json=body)
    assert response.status_code == status, response.text
    assert (await _get(gateway, "dream/history"))["results"] == []


async def test_the_longest_text_that_is_allowed_comes_back_whole(gateway: Gateway) -> None:
    assert (await _put(gateway, "ж" * 100_000))["text"] == "ж" * 100_000


async def test_only_an_unbound_admin_sets_a_directive(gateway: Gateway) -> None:
    keys: list[Json] = [
        {"rights": frozenset({"read", "write"})},
        {"agent_id": "a"},
        {"user_id": "ada"},
        {"namespace": "session/x"},
    ]
    for bindings in keys:
        async with await gateway.new_client(**bindings) as client:
            response = await client.put("/v1/directives/dream", json={"text": TENANT_TEXT})
            assert response.status_code == 403, bindings
            read = await client.get("/v1/directives/dream")
            # A key bound to a namespace reaches working memory alone.
            assert read.status_code == 403 if "namespace" in bindings else read.json()["origin"] == "file"


async def test_a_tenants_text_does_not_apply_to_another_tenant(gateway: Gateway) -> None:
    await _put(gateway, TENANT_TEXT)
    async with await gateway.new_client(f"{gateway.tenant}-other") as client:
        assert (await client.get("/v1/directives/dream")).json()["text"] == "the operator's"
        assert (await client.get("/v1/directives/dream/history")).json()["results"] == []
        response = await client.put("/v1/directives/dream", json={"text": "theirs"})
        assert response.json()["version"] == "1"
    assert (await _get(gateway))["text"] == TENANT_TEXT


async def test_en3_enrichment_follows_the_tenants_rules_from_the_next_run_on(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> None:
    settings = make_settings(apart=True, llm_base_url=models.url, llm_model="m")
    async with running_gateway(settings, tenant) as gateway:
        for rules in (None, TENANT_TEXT):
            if rules is not None:
                await _put(gateway, rules, "memory-rules")
            await gateway.client.post("/v1/memories", json={"content": f"a fact under {rules}"})
            await drain(gateway.resources)
    prompts = [call.prompt for call in models.chat_calls]
    old, new = prompts[0], prompts[-1]
    assert "# Rules for long-term memory" in old
    assert TENANT_TEXT in new
    assert "# Rules for long-term memory" not in new
