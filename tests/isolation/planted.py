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
    await _pay(client, ids)
    for state in states(ids):
        await _hold(client, ids, *state)
    ids = replace(ids, text=await _keep(client, ids))
    begun = await _done(client.post("/v1/dreams", json=scope(ids)))
    ids = replace(ids, run=begun["id"], **await _cursors(client, ids))
    await gateway.resources.index_writer.close()
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
        await _done(client.post("/v1/sessions", json=other | {"store_types": ["tmp"]}))
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


async def _keep(client: httpx.AsyncClient, ids: Ids) -> str:
    """Observe something, give the agent a root with something of everything; return the id of its text."""
    observed = {
        "kind": "fact",
        "content": f"{CANARY} was observed",
        "data": {CANARY: CANARY},
        "tags": [CANARY],
    }
    await _done(client.post(f"/v1/sessions/{ids.session}/observations", json=observed))
    root, text = f"/v1/agents/{ids.agent}", {"content": CANARY, "metadata": {CANARY: CANARY}}
    await _done(client.put(root, json={"public_key": CANARY, "document": CANARY}))
    await _done(client.put(f"{root}/kv/{ids.patrol}", json={"value": CANARY}))
    headers = {"content-type": f"text/{CANARY}"}
    await _done(client.put(f"{root}/files/{ids.patrol}", content=CANARY, headers=headers))
    headers = {"idempotency-key": ids.request_key}
    return str((await _done(client.post(f"{root}/texts", json=text, headers=headers)))["id"])


def states(ids: Ids) -> list[tuple[str, dict[str, str]]]:
    """Return the paths, with their queries, of all that has keys and collections."""
    sessions = [f"/v1/sessions/{one}" for one in (ids.session, f"patrol-{ids.session}")]
    return [*((path, {}) for path in sessions), (f"/v1/stores/{ids.patrol}", scope(ids))]


async def _hold(client: httpx.AsyncClient, ids: Ids, path: str, query: dict[str, str]) -> None:
    """Give a session or a scratch store something of everything."""
    value = {"value": {"type": "obj", "data": "", "metadata": {CANARY: CANARY}}}
    await _done(client.put(f"{path}/kv/{ids.patrol}", params=query, json=value))
    await _done(client.put(f"{path}/kv/{CANARY}", params=query, json={"value": CANARY}))
    rows = {"type": "vec", "value": {"rows": [[1, 0]], "labels": [CANARY]}, "index": True}
    for label in (ids.patrol, CANARY):
        await _done(client.put(f"{path}/collections/{label}", params=query, json=rows))
    if not query:
        said = {"role": "user", "content": CANARY, "metadata": {CANARY: CANARY}}
        await _done(client.post(f"{path}/transcript", json=said))
        await _done(client.put(f"{path}/kv/working_memory", json={"value": CANARY}))


async def _pay(client: httpx.AsyncClient, ids: Ids) -> None:
    """Report what a call used, and set a price and budgets."""
    usage = {"usage_id": CANARY, "model": CANARY, "usage": {"total_tokens": 9}}
    await _done(client.post(f"/v1/sessions/{ids.session}/spend", json=usage))
    await _done(client.put(f"/v1/prices/{CANARY}", json={"input": 1}))
    for scope_ in (f"agent/{ids.agent}", f"agent/{CANARY}"):
        limit = {"period": "day", "limit_tokens": 10**12}
        await _done(client.put(f"/v1/budgets/{scope_}", json=limit))


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
    for path, query in states(ids):
        await _done(client.put(f"{path}/kv/{ids.patrol}", params=query, json={"value": "mine"}))
        body = {"type": "doc", "value": {"mine": True}}
        await _done(client.put(f"{path}/collections/{ids.patrol}", params=query, json=body))
    observed = {"kind": "fact", "content": "what was observed, mine"}
    await _done(client.post(f"/v1/sessions/{ids.session}/observations", json=observed))
    await _done(client.put(f"/v1/agents/{ids.agent}", json={"public_key": "mine", "document": "mine"}))
