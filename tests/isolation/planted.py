"""A tenant with something of everything, and a canary in each of its texts.

Planted through the product itself: saved, enriched, embedded, recalled, edited, forgotten. The
canary stands wherever text can stand except in the ids that the cases ask by.
"""

import json
import secrets
from dataclasses import replace
from typing import Any

import httpx

from tests.conftest import Gateway
from tests.draining import drain
from tests.isolation.cases import MESSAGE
from tests.isolation.ids import Ids, made_up
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

CANARY = f"zqx{secrets.token_hex(5)}"


async def plant(gateway: Gateway, models: ModelServer) -> Ids:
    """Fill a tenant and return the ids of what it has."""
    ids, client = made_up(), gateway.client
    models.chat_default = Reply(json.dumps([{"content": f"{CANARY} enriched", "tags": [CANARY]}]))
    archived = await _save(client, ids, content=f"{CANARY} raw, to be enriched away")
    await drain(gateway.resources)
    kept = await _save(client, ids, content=ids.content, enrich=False)
    ids = replace(ids, memory=kept["id"], archived=archived["id"])
    await _edit_and_forget(client, ids)
    await _converse(client, ids)
    await _work(client, ids)
    await _leave_pending(client, ids)
    await _instruct(client, ids)
    begun = await _done(client.post("/v1/dreams", json=scope(ids)))
    ids = replace(ids, run=begun["id"], **await _cursors(client, ids))
    await gateway.resources.writer.close()
    return ids


def scope(ids: Ids) -> dict[str, str]:
    """Return the fields that name the scope of everything planted."""
    return {"agent_id": ids.agent, "user_id": ids.user}


async def _save(client: httpx.AsyncClient, ids: Ids, **fields: Any) -> dict[str, Any]:
    body = {
        "tags": [CANARY],
        "category": f"secrets/{CANARY}",
        "metadata": {CANARY: CANARY},
        "source": {"session_id": ids.session, "seq": 1, "speaker": CANARY},
        **scope(ids),
        **fields,
    }
    return await _done(client.post("/v1/memories", json=body))


async def _done(call: Any) -> dict[str, Any]:
    answer: httpx.Response = await call
    assert answer.is_success, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def _edit_and_forget(client: httpx.AsyncClient, ids: Ids) -> None:
    await _done(client.patch(f"/v1/memories/{ids.memory}", json={"importance": 0.9}))
    gone = await _save(client, ids, content=f"{CANARY} to be forgotten")
    await _done(client.delete(f"/v1/memories/{gone['id']}"))


async def _converse(client: httpx.AsyncClient, ids: Ids) -> None:
    opened = {"id": ids.session, **scope(ids)}
    await _done(client.post("/v1/sessions", json=opened))
    await _done(client.post("/v1/sessions", json={"id": f"{CANARY}-2", "name": CANARY, **scope(ids)}))
    for kind in ("patrol", "subagent"):
        other = {"id": f"{kind}-{ids.session}", "kind": kind, "name": ids.patrol, **scope(ids)}
        await _done(client.post("/v1/sessions", json=other))
    for message in ({"message": f"what of {CANARY} and the gate?"}, MESSAGE):
        headers = {"idempotency-key": ids.request_key} if message is MESSAGE else {}
        await _done(client.post(f"/v1/sessions/{ids.session}/context", json=message, headers=headers))
    turn = {"role": "assistant", "content": f"{CANARY} said", "speaker": CANARY, "metadata": {CANARY: CANARY}}
    await _done(client.post(f"/v1/sessions/{ids.session}/turns", json=turn))


async def _work(client: httpx.AsyncClient, ids: Ids) -> None:
    entry = {"value": f"{CANARY} letters", "ttl_seconds": 3600, "category": CANARY, "tags": [CANARY]}
    for key in (ids.desk_key, f"{ids.namespace}/{CANARY}", f"patrol/{ids.patrol}/{CANARY}"):
        await _done(client.put(f"/v1/working/{key}", json=entry))
    large = entry | {"value": f"# {CANARY}\n\n" + f"{CANARY} line\n\n" * 2000}
    await _done(client.put(f"/v1/working/subagent/{ids.patrol}/report", json=large))


async def _leave_pending(client: httpx.AsyncClient, ids: Ids) -> None:
    """Leave something to do, and a stored answer."""
    body = {"content": f"{CANARY} still pending", **scope(ids)}
    headers = {"idempotency-key": ids.request_key}
    await _done(client.post("/v1/memories", json=body, headers=headers))
    same = {"content": ids.content, **scope(ids)}
    await _done(client.post("/v1/memories/batch", json={"memories": [same]}, headers=headers))


async def _instruct(client: httpx.AsyncClient, ids: Ids) -> None:
    """Report a signal, and set a directive of the tenant's own."""
    signal = {"type": "Correction", "summary": CANARY, "detail": CANARY}
    await _done(client.post(f"/v1/sessions/{ids.session}/feedback", json=signal))
    await _done(client.put("/v1/directives/memory-rules", json={"text": f"# {CANARY}"}))


async def _cursors(client: httpx.AsyncClient, ids: Ids) -> dict[str, str]:
    memories = await _done(client.get("/v1/memories", params={"limit": "1", **scope(ids)}))
    sessions = await _done(client.get("/v1/sessions", params={"limit": "1"}))
    return {"cursor": memories["next_cursor"], "session_cursor": sessions["next_cursor"]}


async def make_twin(client: httpx.AsyncClient, ids: Ids) -> None:
    """Give another tenant things of its own under all of the same ids."""
    lines = [{"id": ids.memory, "content": ids.content}, {"id": ids.archived, "content": "mine"}]
    content = "\n".join(json.dumps(line) for line in lines).encode()
    await _done(client.post("/v1/memories/import", params=scope(ids), content=content))
    await _done(client.post("/v1/sessions", json={"id": ids.session, **scope(ids)}))
    for kind in ("patrol", "subagent"):
        other = {"id": f"{kind}-{ids.session}", "kind": kind, "name": ids.patrol, **scope(ids)}
        await _done(client.post("/v1/sessions", json=other))
    await _done(client.post(f"/v1/sessions/{ids.session}/context", json={"message": "the gate, mine"}))
    await _done(client.put(f"/v1/working/{ids.desk_key}", json={"value": "mine", "ttl_seconds": 3600}))
