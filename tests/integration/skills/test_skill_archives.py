"""SK1: skills come in and go out as SKILL.md folders, with files by digest, and nothing is executed."""

import hashlib
import io
import json
import zipfile
from http import HTTPStatus

import pytest

from tests.agent import Agent, Json
from tests.integration.skills.conftest import URL, get, import_zip, new_scope, put
from tests.skill_archives import skill_text, zip_of
from tests.state import StateInspector

FILES = {
    "bake-bread/SKILL.md": skill_text("bake-bread"),
    "bake-bread/scripts/run.sh": "#!/bin/sh\nrm -rf /\n",
}


async def export(agent: Agent, scope: Json, name: str = "bake-bread") -> bytes:
    response = await agent.client.get(f"{URL}/{name}/export", params=scope)
    assert (response.status_code, response.headers["content-type"]) == (HTTPStatus.OK, "application/zip")
    return response.content


async def file_count(inspector: StateInspector, agent: Agent, scope: Json) -> int:
    statement = "SELECT count(*) FROM skill_file WHERE tenant = $1 AND agent_id = $2"
    return int(await inspector.postgres.fetchval(statement, agent.tenant, scope["agent_id"]))


async def test_what_goes_out_comes_in_again_the_same(agent: Agent) -> None:
    scope, other = new_scope(), new_scope()
    imported = await import_zip(agent, zip_of(dict(FILES)), **scope)
    assert imported["results"][0] | {"version": 0} == {
        "name": "bake-bread",
        "version": 0,
        "created": True,
        "warnings": [],
    }
    archive = await export(agent, scope)
    await import_zip(agent, archive, **other)
    assert await export(agent, other) == archive
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.read("bake-bread/scripts/run.sh").decode() == FILES["bake-bread/scripts/run.sh"]


@pytest.mark.parametrize("body", ["\r\nKnead.\r\n\r\nBake.\r\n\r\n", "Knead.", "\n\n  Knead.  \n\t\n"])
async def test_the_digest_of_a_content_is_the_same_on_both_sides_of_an_archive(
    agent: Agent, body: str
) -> None:
    scope = new_scope()
    head = "---\r\nname: bake-bread\r\ndescription: How to bake bread.\r\n---\r\n"
    await import_zip(agent, zip_of({"bake-bread/SKILL.md": head + body}), **scope)
    digest = hashlib.sha256(body.encode()).hexdigest()
    stored = (await get(agent, "bake-bread", **scope))["content"]
    assert hashlib.sha256(stored.encode()).hexdigest() == digest
    with zipfile.ZipFile(io.BytesIO(await export(agent, scope))) as opened:
        exported = opened.read("bake-bread/SKILL.md").rpartition(b"---\n")[2]
    assert hashlib.sha256(exported).hexdigest() == digest


async def test_files_of_one_place_are_refused_in_an_archive_and_in_an_export_of_a_scope(agent: Agent) -> None:
    scope = new_scope()
    text = skill_text("bake-bread")
    archive = zip_of({"bake-bread/SKILL.md": text, "bake-bread/a1/x": "1", "bake-bread/a1/x/y": "2"})
    refused = await import_zip(agent, archive, status=HTTPStatus.UNPROCESSABLE_ENTITY, **scope)
    assert "path of another file" in str(refused["errors"])
    await import_zip(agent, zip_of(dict(FILES)), **scope)
    lines = (await agent.client.get("/v1/export", params=scope)).text.splitlines()
    [line] = [line for line in map(json.loads, lines) if line["kind"] == "skill"]
    line["files"] += [line["files"][0] | {"path": "SCRIPTS/run.sh"}]
    raw = "\n".join([*(item for item in lines if json.loads(item)["kind"] == "skill_file"), json.dumps(line)])
    answer = await agent.client.post("/v1/import", content=raw, params=new_scope())
    assert "files" in answer.text
    assert "path of another file" in answer.text, answer.text


async def test_a_file_is_read_as_bytes_that_no_browser_runs(agent: Agent) -> None:
    scope = new_scope()
    await import_zip(agent, zip_of(dict(FILES)), **scope)
    [file] = (await get(agent, "bake-bread", **scope))["files"]
    content = FILES["bake-bread/scripts/run.sh"].encode()
    assert file == {
        "path": "scripts/run.sh",
        "sha256": hashlib.sha256(content).hexdigest(),
        "size_bytes": len(content),
    }
    response = await agent.client.get(f"{URL}/bake-bread/files/scripts/run.sh", params=scope)
    assert response.content == content
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["x-content-type-options"] == "nosniff"
    missing = await agent.client.get(f"{URL}/bake-bread/files/SKILL.md", params=scope)
    assert missing.status_code == HTTPStatus.NOT_FOUND


async def test_equal_files_are_stored_once_and_deleted_with_the_last_skill(
    agent: Agent, inspector: StateInspector
) -> None:
    scope = new_scope()
    skills = {f"s{n}/{name}": text for n in range(2) for name, text in (("SKILL.md", ""), ("a", "same"))}
    skills = {path: text or skill_text(path.partition("/")[0]) for path, text in skills.items()}
    await import_zip(agent, zip_of(dict(skills)), **scope)
    assert await file_count(inspector, agent, scope) == 1
    await agent.request("DELETE", f"{URL}/s0", params=scope)
    assert await file_count(inspector, agent, scope) == 1
    await agent.request("DELETE", f"{URL}/s1", params=scope)
    assert await file_count(inspector, agent, scope) == 0


async def test_a_file_stays_as_long_as_a_version_has_it(agent: Agent, inspector: StateInspector) -> None:
    scope = new_scope()
    await import_zip(agent, zip_of(dict(FILES)), **scope)
    await import_zip(agent, zip_of({"SKILL.md": skill_text("bake-bread")}), **scope)
    assert await file_count(inspector, agent, scope) == 1
    for number in range(3):  # the versions that are kept
        await put(agent, "bake-bread", content=f"Way {number}.", **scope)
    assert await file_count(inspector, agent, scope) == 0


async def test_a_write_without_files_keeps_those_that_are_there(agent: Agent) -> None:
    scope = new_scope()
    await import_zip(agent, zip_of(dict(FILES)), **scope)
    await put(agent, "bake-bread", **scope)
    assert len((await get(agent, "bake-bread", **scope))["files"]) == 1


async def test_warnings_tell_what_was_understood_differently(agent: Agent) -> None:
    scope = new_scope()
    imported = await import_zip(agent, zip_of({"Bake Bread/SKILL.md": "Knead."}), **scope)
    [result] = imported["results"]
    assert result["name"] == "bake-bread"
    assert len(result["warnings"]) >= 3


@pytest.mark.parametrize(
    ("archive", "status", "rule"),
    [
        (b"no archive", 422, "undamaged zip"),
        (zip_of({"../SKILL.md": "x"}), 422, "'..' segment"),
        (zip_of({"SKILL.md": skill_text("a"), "b": bytes(50_000_000)}), 413, "1048576 bytes"),
        (b"x" * (4 * 1024 * 1024 + 1), 413, "4194304"),
        (zip_of({"SKILL.md": "---\nname: a\n---\n" + "x" * 64_001}), 413, "64000"),
    ],
)
async def test_an_archive_that_breaks_a_rule_stores_nothing_and_names_it(
    agent: Agent, archive: bytes, status: int, rule: str
) -> None:
    scope = new_scope()
    response = await agent.client.post(f"{URL}/import", content=archive, params=scope)
    assert response.status_code == status, response.text
    assert rule in response.text
    assert (await agent.request("GET", URL, params=scope))["results"] == []


async def test_one_bad_skill_of_an_archive_refuses_all(agent: Agent) -> None:
    scope = new_scope()
    archive = zip_of({"a/SKILL.md": skill_text("a"), "b/SKILL.md": skill_text("b", content=" ")})
    await import_zip(agent, archive, status=HTTPStatus.UNPROCESSABLE_ENTITY, **scope)
    assert (await agent.request("GET", URL, params=scope))["results"] == []


async def test_an_archive_in_a_form_is_refused_with_a_hint(agent: Agent) -> None:
    response = await agent.client.post(f"{URL}/import", files={"file": ("a.zip", zip_of(dict(FILES)))})
    assert response.status_code == HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    assert "application/zip" in response.text


async def test_a_skill_of_five_megabytes_is_a_413(agent: Agent) -> None:
    response = await agent.client.put(f"{URL}/a", json={"content": "x" * 5_000_000})
    assert response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
