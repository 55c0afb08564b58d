"""What dreams propose about skills, and requests on these proposals."""

import json
from http import HTTPStatus
from typing import Any

from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.dreams.conftest import run_dream
from tests.integration.skills.conftest import URL, put
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

BREAD: Json = {"content": "Bake at 220 degrees in the Miele oven.", "summary": "How to bake bread."}
ROLLS: Json = {"content": "Rolls need 18 minutes.", "summary": "How to bake rolls."}
MERGED = "Bake at 220 degrees in the Miele oven. Rolls need 18 minutes."
PROPOSALS = "/v1/proposals"
GAPS, CONSOLIDATION, OPTIMISATION = ["detect_skill_gaps"], ["consolidate_skills"], ["optimise_skills"]


def reply(*items: Json, drop: list[str] | None = None) -> Reply:
    return Reply(json.dumps({"toSave": list(items), "toDelete": drop or []}))


def merge(*names: str, **fields: Any) -> Json:
    known = {"name": "bake", "summary": "How to bake.", "content": MERGED, "replaces": list(names)}
    return known | fields


async def proposals(agent: Agent, state: str | None = "held") -> list[Json]:
    query = {"kind": "skill"} | ({} if state is None else {"state": state})
    listed = (await agent.request("GET", PROPOSALS, params=query))["results"]
    return [{**proposal, **proposal["skill"], "content": proposal["text"]} for proposal in listed]


async def decide(agent: Agent, proposal: Json, action: str, status: int = HTTPStatus.OK) -> Json:
    path = f"{PROPOSALS}/{proposal['id']}"
    return dict(await agent.request("POST", path, json={"action": action}, status=status))


async def names(agent: Agent) -> list[str]:
    return sorted(skill["name"] for skill in (await agent.request("GET", URL))["results"])


async def propose_merge(gateway: Gateway, agent: Agent, models: ModelServer) -> tuple[Json, Json]:
    """Let a dream propose to join two skills; return the run and the proposal."""
    await put(agent, "bake-bread", see_also=["mill-flour", "bake-rolls"], **BREAD)
    await put(agent, "bake-rolls", see_also=["shop"], **ROLLS)
    models.chat_default = reply(merge("bake-bread", "bake-rolls"))
    run = await run_dream(gateway, passes=CONSOLIDATION)
    [proposal] = await proposals(agent)
    return run, proposal
