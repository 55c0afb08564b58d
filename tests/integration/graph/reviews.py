"""Dreams that review the graph, and what a model proposes then."""

import json

from tests.agent import Json
from tests.conftest import Gateway
from tests.integration.dreams.conftest import run_dream
from tests.standins.behaviours import Reply, Status
from tests.standins.models import ModelServer

NOTHING = Reply(json.dumps({"merge": [], "invalidate": []}))


def merge(keep: str, drop: str) -> Reply:
    return Reply(json.dumps({"merge": [{"keep": keep, "drop": drop}], "invalidate": []}))


async def consolidate(gateway: Gateway, models: ModelServer, reply: Reply | Status = NOTHING) -> Json:
    models.chat_default = reply
    run = await run_dream(gateway, passes=["consolidate_graph"])
    return {"id": run["id"], **run["passes"][0]}
