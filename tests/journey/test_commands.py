"""`loci` commands, run against a running stack as an operator would."""

import json
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path

from tests.agent import Agent
from tests.journey.conftest import NewAgent
from tests.journey.stack import ForkedStack
from tests.process_pool import ProcessPool
from tests.standins.models import ModelServer


async def test_keys_create_prints_only_the_key_and_the_first_request_after_a_revocation_is_refused(
    stack: ForkedStack,
) -> None:
    created = await stack.loci("keys", "create", "--tenant", "acme", "--user", "ada")
    assert created.returncode == 0
    key = created.stdout.removesuffix("\n")
    assert key.startswith("loci_")
    assert not set(key) & set(" \n")
    assert key not in created.stderr
    async with stack.client(key) as client:
        assert (await client.get("/v1/memories")).status_code == HTTPStatus.OK
        other_user = await client.get("/v1/memories", params={"user_id": "bob"})
        assert other_user.status_code == HTTPStatus.FORBIDDEN
        not_admin = await client.delete("/v1/users/ada")
        assert not_admin.status_code == HTTPStatus.FORBIDDEN
        key_id = key.split("_")[1]
        listing = await stack.loci("keys", "list", "--tenant", "acme", COLUMNS="200")
        assert key_id in listing.stdout
        assert key not in listing.stdout
        revoked = await stack.loci("keys", "revoke", key_id)
        assert revoked.returncode == 0
        response = await client.get("/v1/memories")
    assert response.status_code == HTTPStatus.UNAUTHORIZED
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["www-authenticate"] == "Bearer"


async def test_a_key_with_the_right_to_read_may_not_write(new_agent: NewAgent) -> None:
    reader = await new_agent(rights=["read"])
    await reader.request("GET", "/v1/memories")
    await reader.request("POST", "/v1/memories", json={"content": "No."}, status=HTTPStatus.FORBIDDEN)


async def test_an_expired_key_is_refused(new_agent: NewAgent) -> None:
    expired = await new_agent(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    await expired.request("GET", "/v1/memories", status=HTTPStatus.UNAUTHORIZED)


async def test_the_development_key_is_readable_only_by_its_owner_and_has_all_rights(
    stack: ForkedStack,
) -> None:
    assert stack.running.key_file.stat().st_mode & 0o777 == 0o600
    async with stack.client(stack.running.key) as client:
        assert (await client.delete("/v1/users/nobody")).is_success


async def test_doctor_exits_with_0_if_everything_answers_and_prints_what_is_configured(
    stack: ForkedStack,
) -> None:
    with ModelServer() as model:
        settings = {"LOCI_EMBEDDING_BASE_URL": model.url, "LOCI_EMBEDDING_MODEL": "words", "COLUMNS": "200"}
        result = await stack.loci("doctor", **settings)
    assert result.returncode == 0, result.stdout + result.stderr
    language_model, embeddings = "not configured: memories stay", "answers, model words, 64 dimensions"
    parts = ("postgres", "append-only file", language_model, embeddings, "keywords only", "pending jobs")
    for text in (*parts, "model words has no price"):
        assert text in result.stdout


async def test_doctor_exits_with_1_and_names_the_part_that_does_not_answer(stack: ForkedStack) -> None:
    with ModelServer() as stopped_server:
        url = stopped_server.url
    result = await stack.loci("doctor", LOCI_LLM_BASE_URL=url, LOCI_LLM_MODEL="m", COLUMNS="200")
    assert result.returncode == 1
    [line] = [line for line in result.stdout.splitlines() if "failed" in line]
    assert "language model" in line


def test_a_command_without_a_running_stack_says_so_in_one_sentence(
    process_pool: ProcessPool, tmp_path: Path
) -> None:
    result = process_pool.loci("keys", "list", LOCI_DATA_DIR=str(tmp_path))
    assert (result.returncode, result.stdout) == (1, "")
    assert "is `loci up` running?" in result.stderr
    assert len(result.stderr.splitlines()) == 1


async def test_every_kind_of_record_is_exported_and_imported_on_the_command_line(
    stack: ForkedStack, agent: Agent, new_agent: NewAgent, tmp_path: Path
) -> None:
    other = await new_agent()
    await agent.save("Ada likes trains.")
    await agent.append_turn(await agent.session(id="talk"), "I like trains.")
    await agent.request("PUT", "/v1/pinned/tone", json={"content": "Be brief."})
    exported = await stack.loci("export", "--tenant", agent.tenant)
    assert exported.stdout.encode() == (await agent.client.get("/v1/export")).content
    file = tmp_path / "export.ndjson"
    file.write_text(exported.stdout)
    imported = await stack.loci("import", str(file), "--tenant", other.tenant)
    assert json.loads(imported.stdout)["records"]["created"] == len(exported.stdout.splitlines()) == 4
    assert (await other.client.get("/v1/export")).content.decode() == exported.stdout
    turns = await stack.loci("export", "--tenant", other.tenant, "--kinds", "turn")
    assert [json.loads(line)["content"] for line in turns.stdout.splitlines()] == ["I like trains."]
    unknown = await stack.loci("export", "--kinds", "spend", "-o", str(tmp_path / "none"))
    assert (unknown.returncode, (tmp_path / "none").exists()) == (1, False)
    assert "kinds" in unknown.stderr


async def test_consent_to_patterns_is_shown_given_and_withdrawn(
    stack: ForkedStack, new_agent: NewAgent
) -> None:
    agent = await new_agent()
    named = ("--tenant", agent.tenant)
    shown = await stack.loci("patterns", "show", *named)
    assert (shown.returncode, shown.stdout) == (0, f"tenant '{agent.tenant}': shares nothing\n")
    given = await stack.loci("patterns", "consent", *named)
    assert given.stdout.startswith(f"tenant '{agent.tenant}': shares patterns since 2")
    assert (await agent.request("GET", "/v1/patterns/consent"))["consent"] is True
    shown = await stack.loci("patterns", "show", "--flow", "book_flight", *named)
    assert shown.returncode == 0
    assert "tenants" in shown.stdout
    withdrawn = await stack.loci("patterns", "withdraw", *named)
    assert withdrawn.stdout == f"tenant '{agent.tenant}': shares nothing\n"
    assert (await agent.request("GET", "/v1/patterns/consent"))["consent"] is False
    unknown = await stack.loci("patterns", "consent", "--tenant", "nobody-of-this-name")
    assert (unknown.returncode, unknown.stderr.strip()) == (1, "loci: no tenant 'nobody-of-this-name'")
