"""A dream run end to end: started in the terminal and over HTTP, seen in Flower, counted and undone."""

import json
import re
from http import HTTPStatus
from typing import Any

import httpx
import pytest

from shared.foundation.stages import DreamPass, task_of_pass
from tests.agent import Agent, Json, wait_until
from tests.ended_runs import wait_until_ended
from tests.journey.stack import ForkedStack

FACTS = (
    ("Ada's bicycle is green and stands in the shed.", "user/bicycle"),
    ("Ada's bicycle is green.", "user/bicycle"),
    ("Ada is on the tram right now.", "general"),
    ("The invoice run starts on the 3rd of each month.", "project-context/billing"),
    ("Ada plays the oboe in an orchestra.", "user/hobbies"),
)
PASSES = [name.value for name in DreamPass]
pytestmark = pytest.mark.usefixtures("dream_replies")


@pytest.fixture
async def ids(agent_with_model: Agent) -> list[str]:
    """Save what an agent knows before the run; return the ids."""
    return [
        str((await agent_with_model.save(content, category=category, agent_id="support", enrich=False))["id"])
        for content, category in FACTS
    ]


async def list_ids(agent: Agent) -> set[str]:
    payload = await agent.request("GET", "/v1/memories", params={"agent_id": "support", "limit": 100})
    return {memory["id"] for memory in payload["results"]}


async def list_tasks(stack: ForkedStack, run_id: str) -> dict[str, Json]:
    """Return the tasks of a run by name, as Flower shows them."""
    file = stack.running.flower_password_file
    assert file is not None
    login = (stack.running.flower_user, file.read_text().strip())
    async with httpx.AsyncClient(base_url=stack.running.flower_url, auth=login, trust_env=False) as flower:
        response = await flower.get("/api/tasks", params={"limit": 10_000})
    assert response.status_code == HTTPStatus.OK
    tasks: dict[str, Json] = response.json()
    return {task["name"]: task for task in tasks.values() if run_id in (task["kwargs"] or "")}


async def wait_for_tasks(stack: ForkedStack, agent: Agent, run_id: str) -> dict[str, Json]:
    """Wait until Flower shows a successful task for each pass of a run; return the tasks by name."""
    task_names = {task_of_pass(name) for name in DreamPass}

    async def complete() -> dict[str, Json] | None:
        tasks = await list_tasks(stack, run_id)
        successful = {name for name, task in tasks.items() if task["state"] == "SUCCESS"}
        return tasks if task_names <= successful else None

    tasks = await wait_until(complete)
    assert tasks is not None
    return tasks


async def test_dr7_a_run_is_started_watched_shown_and_undone_in_the_terminal(
    stack_with_models: ForkedStack, agent_with_model: Agent, ids: list[str]
) -> None:
    tenant = ("--tenant", agent_with_model.tenant)
    started = await stack_with_models.loci("dreams", "run", *tenant, "--agent", "support")
    assert started.returncode == 0, started.stderr
    first, *lines = started.stdout.splitlines()
    run_id = first.removeprefix("run ")
    assert [line.split()[0] for line in lines] == PASSES, "one line of progress per pass"
    [result] = re.findall(r"consolidate +done +\d+\.\d s +(.*)", started.stdout)
    assert sorted(result.replace(";", ",").split(", ")) == ["1 created", "1 refused", "3 archived"]
    after = await list_ids(agent_with_model)
    assert set(ids[3:]) < after
    assert not after & set(ids[:3])

    listed = await stack_with_models.loci("dreams", "list", *tenant, COLUMNS="200")
    assert run_id in listed.stdout
    run: dict[str, Any] = json.loads((await stack_with_models.loci("dreams", "show", run_id, *tenant)).stdout)
    assert [pass_["name"] for pass_ in run["passes"]] == PASSES
    actions = sorted(
        (change["action"], change["entry_id"]) for change in run["diff"] if change["action"] == "archived"
    )
    assert actions == sorted(("archived", memory_id) for memory_id in ids[:3])

    undo = await stack_with_models.loci("dreams", "undo", run_id, *tenant)
    assert undo.returncode == 0, undo.stderr
    undone = json.loads(undo.stdout)
    assert (sorted(undone["restored"]), undone["kept"]) == (sorted(ids[:3]), [])
    assert await list_ids(agent_with_model) == set(ids)


async def test_dr1_each_pass_is_a_task_of_its_own_in_flower_that_shows_its_scope(
    stack_with_models: ForkedStack, agent_with_model: Agent, ids: list[str]
) -> None:
    body = {"agent_id": "support"}
    started = await agent_with_model.request("POST", "/v1/dreams", json=body, status=HTTPStatus.CREATED)

    run = await wait_until_ended(agent_with_model, started["id"])

    assert [pass_["state"] for pass_ in run["passes"]].count("done") >= 1
    tasks = await wait_for_tasks(stack_with_models, agent_with_model, run["id"])
    arguments = tasks["dream.consolidate"]["kwargs"]
    for part in (
        f"'tenant': '{agent_with_model.tenant}'",
        "'agent': 'support'",
        "'user': None",
        f"'run': '{run['id']}'",
    ):
        assert part in arguments
    assert tasks["dream.consolidate"]["runtime"] > 0


async def test_dr7_the_metrics_count_runs_seconds_changes_rejections_and_tokens(
    stack_with_models: ForkedStack, agent_with_model: Agent, ids: list[str]
) -> None:
    before = await read_counters(stack_with_models)
    started = await agent_with_model.request(
        "POST", "/v1/dreams", json={"agent_id": "support"}, status=HTTPStatus.CREATED
    )
    await wait_until_ended(agent_with_model, started["id"])
    after = await read_counters(stack_with_models)
    increases = {
        name: after[name] - before.get(name, 0) for name in after if after[name] > before.get(name, 0)
    }
    assert increases['dream_runs_total{kind="done"}'] >= 1
    assert increases['dream_passes_total{kind="consolidate:done"}'] >= 1
    assert increases['dream_passes_total{kind="deduplicate:skipped"}'] >= 1
    assert increases['dream_seconds_total{kind="consolidate"}'] > 0
    assert increases['dream_changes_total{kind="created"}'] >= 1
    assert increases['dream_changes_total{kind="archived:merged"}'] >= 2
    assert increases['dream_changes_total{kind="archived:ephemeral"}'] >= 1
    assert increases['dream_rejections_total{kind="unknown_id"}'] >= 1
    assert increases['dream_tokens_total{kind="input"}'] > increases['dream_tokens_total{kind="output"}'] > 0


async def read_counters(stack: ForkedStack) -> dict[str, float]:
    """Return the counters of dreams by name and label."""
    async with stack.client() as client:
        text = (await client.get("/metrics")).text
    lines = [line.removeprefix("loci_") for line in text.splitlines() if line.startswith("loci_dream_")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
