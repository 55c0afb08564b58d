"""A tenant with a record of every kind, and a secret in each of its texts.

The records are made through the product itself: saved, enriched, embedded, recalled, updated and
deleted. The secret is in every text but the ids that the cases name.
"""

import json
import secrets
from dataclasses import replace
from typing import Any

import httpx

from tests.conftest import Gateway
from tests.draining import drain
from tests.isolation.calls import FORM, form
from tests.isolation.ids import Ids, unused_ids
from tests.isolation.record_routes import MESSAGE
from tests.skill_archives import skill_text, zip_of
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

SECRET = f"zqx{secrets.token_hex(5)}"


async def fill(gateway: Gateway, models: ModelServer) -> Ids:
    """Give a tenant a record of every kind, and return their ids."""
    ids, client = unused_ids(), gateway.client
    models.chat_default = Reply(json.dumps([{"content": f"{SECRET} enriched", "tags": [SECRET]}]))
    archived = await _save_memory(client, ids, content=f"{SECRET} raw, to be archived by enrichment")
    document = await _upload(client)
    await drain(gateway.resources)
    memory = await _save_memory(client, ids, content=ids.content, enrich=False)
    ids = replace(ids, memory=memory["id"], archived=archived["id"], document=document["id"])
    await _update_and_delete(client, ids)
    name = {"namespace": ids.namespace, "key": ids.session}
    await _save_memory(client, ids, content=f"{SECRET} under a key", **name)
    await _add_conversation(client, ids)
    await _add_working_entries(client, ids)
    await _add_pending_job(client, ids)
    await _add_feedback_and_directive(client, ids)
    await _succeed(client.put(f"/v1/pinned/{ids.patrol}", json={"content": SECRET, **scope(ids)}))
    rule = {"condition": {"flow": SECRET, "description": SECRET}, "related": [SECRET], **scope(ids)}
    effect = {"effect": {"slot": SECRET, "value": SECRET, "template": SECRET}}
    await _succeed(client.put(f"/v1/preferences/{ids.patrol}", json=rule | effect))
    await _add_skill(client, ids)
    await _add_spend(client, ids)
    await _add_scratchpad(client, ids)
    ids = replace(ids, playbook=await _add_playbooks(client, ids))
    entity, triple = await _add_graph(client, ids)
    ids = replace(ids, entity=entity, triple=triple)
    for path, query in state_paths(ids):
        await _add_state(client, ids, path, query)
    ids = replace(ids, text=await _add_agent(client, ids))
    run = await _succeed(client.post("/v1/dreams", json=scope(ids)))
    ids = replace(ids, run=run["id"], **await _cursors(client, ids))
    await gateway.resources.index_writer.close()
    return ids


def scope(ids: Ids) -> dict[str, str]:
    """Return the fields that name the scope of all these records."""
    return {"agent_id": ids.agent, "user_id": ids.user}


async def _add_skill(client: httpx.AsyncClient, ids: Ids) -> None:
    """Import a skill with a file, and write a second version of it."""
    text = skill_text(ids.patrol, f"How {SECRET} opens.", SECRET)
    archive = zip_of({"SKILL.md": text, f"{SECRET}/note.txt": SECRET})
    await _succeed(client.post("/v1/skills/import", params=scope(ids), content=archive))
    body = {"content": f"# {SECRET}", "see_also": [SECRET], **scope(ids)}
    await _succeed(client.put(f"/v1/skills/{ids.patrol}", json=body))
    await _succeed(client.get(f"/v1/skills/{ids.patrol}", params=scope(ids)))


async def _save_memory(client: httpx.AsyncClient, ids: Ids, **fields: Any) -> dict[str, Any]:
    body = {
        "tags": [SECRET],
        "category": f"secrets/{SECRET}",
        "metadata": {SECRET: SECRET},
        "source": {"session_id": ids.session, "seq": 1, "speaker": SECRET},
        **scope(ids),
        **fields,
    }
    return await _succeed(client.post("/v1/memories", json=body))


async def _succeed(call: Any) -> dict[str, Any]:
    response: httpx.Response = await call
    assert response.is_success, response.text
    content: dict[str, Any] = response.json()
    return content


async def _upload(client: httpx.AsyncClient) -> dict[str, Any]:
    """Upload a document whose text, title and source have the secret."""
    content = form(title=SECRET, source=SECRET, file=f"The gate opens at seven, says {SECRET}.")
    return await _succeed(client.post("/v1/documents", content=content, headers=FORM))


async def _update_and_delete(client: httpx.AsyncClient, ids: Ids) -> None:
    await _succeed(client.patch(f"/v1/memories/{ids.memory}", json={"importance": 0.9}))
    deleted = await _save_memory(client, ids, content=f"{SECRET} to be deleted")
    await _succeed(client.delete(f"/v1/memories/{deleted['id']}"))


async def _add_conversation(client: httpx.AsyncClient, ids: Ids) -> None:
    session = {"id": ids.session, **scope(ids)}
    await _succeed(client.post("/v1/sessions", json=session))
    await _succeed(client.post("/v1/sessions", json={"id": f"{SECRET}-2", "name": SECRET, **scope(ids)}))
    for kind in ("patrol", "subagent"):
        other = {"id": f"{kind}-{ids.session}", "kind": kind, "name": ids.patrol, **scope(ids)}
        await _succeed(client.post("/v1/sessions", json=other | {"store_types": ["tmp"]}))
    for message in ({"message": f"what of {SECRET} and the gate?"}, MESSAGE):
        headers = {"idempotency-key": ids.idempotency_key} if message is MESSAGE else {}
        await _succeed(client.post(f"/v1/sessions/{ids.session}/context", json=message, headers=headers))
    turn = {"role": "assistant", "content": f"{SECRET} said", "speaker": SECRET, "metadata": {SECRET: SECRET}}
    await _succeed(client.post(f"/v1/sessions/{ids.session}/turns", json=turn))


async def _add_working_entries(client: httpx.AsyncClient, ids: Ids) -> None:
    entry = {"value": f"{SECRET} letters", "ttl_seconds": 3600, "category": SECRET, "tags": [SECRET]}
    for key in (ids.working_key, f"{ids.namespace}/{SECRET}", f"patrol/{ids.patrol}/{SECRET}"):
        await _succeed(client.put(f"/v1/working/{key}", json=entry))
    large = entry | {"value": f"# {SECRET}\n\n" + f"{SECRET} line\n\n" * 2000}
    await _succeed(client.put(f"/v1/working/subagent/{ids.patrol}/report", json=large))


async def _add_pending_job(client: httpx.AsyncClient, ids: Ids) -> None:
    """Leave a job undone, and store responses under an idempotency key."""
    body = {"content": f"{SECRET} still pending", **scope(ids)}
    headers = {"idempotency-key": ids.idempotency_key}
    await _succeed(client.post("/v1/memories", json=body, headers=headers))
    same = {"content": ids.content, **scope(ids)}
    await _succeed(client.post("/v1/memories/batch", json={"memories": [same]}, headers=headers))


async def _add_feedback_and_directive(client: httpx.AsyncClient, ids: Ids) -> None:
    """Report a feedback signal, and set a directive of the tenant's own."""
    signal = {"type": "Correction", "summary": SECRET, "detail": SECRET}
    await _succeed(client.post(f"/v1/sessions/{ids.session}/feedback", json=signal))
    await _succeed(client.put("/v1/directives/memory-rules", json={"text": f"# {SECRET}"}))


async def _add_agent(client: httpx.AsyncClient, ids: Ids) -> str:
    """Add an observation, and an agent profile with a key, a file and a text. Return the id of the text."""
    observation = {
        "kind": "fact",
        "content": f"{SECRET} was observed",
        "data": {SECRET: SECRET},
        "tags": [SECRET],
    }
    await _succeed(client.post(f"/v1/sessions/{ids.session}/observations", json=observation))
    root, text = f"/v1/agents/{ids.agent}", {"content": SECRET, "metadata": {SECRET: SECRET}}
    await _succeed(client.put(root, json={"public_key": SECRET, "document": SECRET}))
    await _succeed(client.put(f"{root}/kv/{ids.patrol}", json={"value": SECRET}))
    headers = {"content-type": f"text/{SECRET}"}
    await _succeed(client.put(f"{root}/files/{ids.patrol}", content=SECRET, headers=headers))
    headers = {"idempotency-key": ids.idempotency_key}
    return str((await _succeed(client.post(f"{root}/texts", json=text, headers=headers)))["id"])


async def _add_scratchpad(client: httpx.AsyncClient, ids: Ids) -> None:
    """Note snippets, promote one to the business context, and save a report whose promotion stays due."""
    root = f"/v1/sessions/{ids.session}"
    for content in (f"{SECRET} was noted", f"{SECRET} was noted later"):
        await _succeed(client.post(f"{root}/scratchpad", json={"content": content}))
    body = {"to": "business_context", "reason": SECRET}
    await _succeed(client.post(f"{root}/scratchpad/promote", json=body))
    await _succeed(client.post(f"{root}/report", json={"title": SECRET, "content": f"{SECRET} was found"}))


async def _add_playbooks(client: httpx.AsyncClient, ids: Ids) -> str:
    """Record playbooks, consent to patterns, and find one for a session; return the id of the first."""
    body = {
        "flow_dact": "letters",
        "slots": {SECRET: SECRET},
        "tool_calls": [{"tool_id": SECRET, "parameters": {SECRET: SECRET}}],
        "outcome": "success",
        "user_query": f"send the letter of {SECRET}",
    }
    headers = {"idempotency-key": ids.idempotency_key}
    playbook = await _succeed(client.post("/v1/playbooks", json=body | scope(ids), headers=headers))
    await _succeed(client.post("/v1/playbooks", json=body | {"session_id": ids.session}))
    await _succeed(client.put("/v1/patterns/consent", json={"consent": True}))
    search = {"flow": "letters", "session_id": ids.session}
    assert (await _succeed(client.post("/v1/playbooks/search", json=search)))["snippet_id"]
    return str(playbook["id"])


async def _add_graph(client: httpx.AsyncClient, ids: Ids) -> tuple[str, str]:
    """Save an entity and triples of the graph, and delete one; return the ids of an entity and a triple."""
    entity = {"name": SECRET, "aliases": [f"{SECRET} too"], "metadata": {SECRET: SECRET}, **scope(ids)}
    saved = await _succeed(client.post("/v1/graph/entities", json=entity))
    body = {"subject": SECRET, "predicate": "owns", "fact": SECRET, **scope(ids)}
    source = {"source": {"session_id": ids.session, "seq": 1}}
    triple = await _succeed(client.post("/v1/graph/triples", json=body | source | {"object": "gate"}))
    deleted = await _succeed(client.post("/v1/graph/triples", json=body | {"literal": SECRET}))
    await _succeed(client.delete(f"/v1/graph/triples/{deleted['id']}"))
    return str(saved["id"]), str(triple["id"])


def state_paths(ids: Ids) -> list[tuple[str, dict[str, str]]]:
    """Return the path and query of everything that has keys and collections."""
    sessions = [f"/v1/sessions/{session_id}" for session_id in (ids.session, f"patrol-{ids.session}")]
    return [*((path, {}) for path in sessions), (f"/v1/stores/{ids.patrol}", scope(ids))]


async def _add_state(client: httpx.AsyncClient, ids: Ids, path: str, query: dict[str, str]) -> None:
    """Give a session or a scratch store keys and collections, and a session a transcript."""
    value = {"value": {"type": "obj", "data": "", "metadata": {SECRET: SECRET}}}
    await _succeed(client.put(f"{path}/kv/{ids.patrol}", params=query, json=value))
    await _succeed(client.put(f"{path}/kv/{SECRET}", params=query, json={"value": SECRET}))
    rows = {"type": "vec", "value": {"rows": [[1, 0]], "labels": [SECRET]}, "index": True}
    for label in (ids.patrol, SECRET):
        await _succeed(client.put(f"{path}/collections/{label}", params=query, json=rows))
    if not query:
        entry = {"role": "user", "content": SECRET, "metadata": {SECRET: SECRET}}
        await _succeed(client.post(f"{path}/transcript", json=entry))
        await _succeed(client.put(f"{path}/kv/working_memory", json={"value": SECRET}))


async def _add_spend(client: httpx.AsyncClient, ids: Ids) -> None:
    """Report the usage of a model call, and set a price and budgets."""
    usage = {"usage_id": SECRET, "model": SECRET, "usage": {"total_tokens": 9}}
    await _succeed(client.post(f"/v1/sessions/{ids.session}/spend", json=usage))
    await _succeed(client.put(f"/v1/prices/{SECRET}", json={"input": 1}))
    for budget_scope in (f"agent/{ids.agent}", f"agent/{SECRET}"):
        limit = {"period": "day", "limit_tokens": 10**12}
        await _succeed(client.put(f"/v1/budgets/{budget_scope}", json=limit))


async def _cursors(client: httpx.AsyncClient, ids: Ids) -> dict[str, str]:
    memories = await _succeed(client.get("/v1/memories", params={"limit": "1", **scope(ids)}))
    sessions = await _succeed(client.get("/v1/sessions", params={"limit": "1"}))
    return {"cursor": memories["next_cursor"], "session_cursor": sessions["next_cursor"]}


async def fill_with_same_ids(client: httpx.AsyncClient, ids: Ids) -> None:
    """Give another tenant records of its own under all of the same ids."""
    lines = [{"id": ids.memory, "content": ids.content}, {"id": ids.archived, "content": "mine"}]
    content = "\n".join(json.dumps(line) for line in lines).encode()
    await _succeed(client.post("/v1/memories/import", params=scope(ids), content=content))
    await _succeed(client.post("/v1/sessions", json={"id": ids.session, **scope(ids)}))
    for kind in ("patrol", "subagent"):
        other = {"id": f"{kind}-{ids.session}", "kind": kind, "name": ids.patrol, **scope(ids)}
        await _succeed(client.post("/v1/sessions", json=other))
    await _succeed(client.post(f"/v1/sessions/{ids.session}/context", json={"message": "the gate, mine"}))
    await _succeed(client.put(f"/v1/working/{ids.working_key}", json={"value": "mine", "ttl_seconds": 3600}))
    for path, query in state_paths(ids):
        await _succeed(client.put(f"{path}/kv/{ids.patrol}", params=query, json={"value": "mine"}))
        body = {"type": "doc", "value": {"mine": True}}
        await _succeed(client.put(f"{path}/collections/{ids.patrol}", params=query, json=body))
    await _succeed(client.post(f"/v1/sessions/{ids.session}/scratchpad", json={"content": "noted, mine"}))
    observation = {"kind": "fact", "content": "what was observed, mine"}
    await _succeed(client.post(f"/v1/sessions/{ids.session}/observations", json=observation))
    await _succeed(client.put(f"/v1/agents/{ids.agent}", json={"public_key": "mine", "document": "mine"}))
