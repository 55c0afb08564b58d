"""How each route to one record is called: by other tenants (`cases.py`) and bound keys (`rights_cases.py`).

A route is declared once. What a request names comes from the kind of record (`records.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.isolation.calls import Call
from tests.isolation.ids import Ids
from tests.isolation.records import (
    AGENT,
    BUDGET,
    BUSINESS_CONTEXT,
    DOCUMENT,
    ENTITY,
    ENTRIES,
    KEY,
    MEMORY,
    MINED_SESSION,
    NAMESPACES,
    PINNED_TEXT,
    PLAYBOOK,
    PREFERENCE,
    RUN,
    SESSION,
    SESSION_IN_BODY,
    SET_BUDGET,
    SKILL,
    STORE,
    TENANT,
    TRIPLE,
    TRIPLE_THAT_IS_OVER,
    UPLOAD,
    WRITTEN_STORE,
    Record,
)


@dataclass(frozen=True)
class RecordRoute:
    """How a route is called on a record. With several kinds of it, a foreign tenant asks as for the first."""

    records: tuple[Record, ...]
    writes: bool
    status: int = 404
    """What a tenant gets that has no such record."""
    absent: int | None = None
    """What a bound key gets for another's record, if that is not `status`."""
    body: Any = None
    content: bytes | None = None
    path: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the path by which a bound key names what is not there yet."""
    is_repeatable: bool = False
    """Whether a foreign tenant sends the idempotency key of the owner, too."""
    more: Callable[[Ids], list[Call]] = lambda _: []
    """What a foreign tenant asks besides."""

    def foreign_calls(self, ids: Ids) -> list[Call]:
        """Return the requests of a tenant with the ids of another's records."""
        calls = [replace(self._call(call), status=self.status) for call in self.records[0].foreign(ids)]
        if self.is_repeatable:
            calls[0] = replace(calls[0], headers={"idempotency-key": ids.idempotency_key})
        return calls + self.more(ids)

    def call_for(self, named: Call) -> Call:
        """Return the request for a record that is named so."""
        call = self._call(named)
        return replace(call, path={**call.path, **self.made})

    def _call(self, call: Call) -> Call:
        body = self.body if call.body is None else {**call.body, **(self.body or {})}
        content = self.content if call.content is None else call.content
        return replace(call, path={**call.path, **self.path}, body=body, content=content)


def _reads(*records: Record, **fields: Any) -> RecordRoute:
    return RecordRoute(records, writes=False, **fields)


def _writes(*records: Record, **fields: Any) -> RecordRoute:
    return RecordRoute(records, writes=True, **fields)


def _updates(ids: Ids) -> list[Call]:
    bodies = ({"content": "taken over"}, {"content": ids.content, "tags": ["taken"]})
    return [
        Call(404, {"memory_id": memory_id}, body=body)
        for memory_id in (ids.memory, ids.archived)
        for body in bodies
    ]


def _full_value_and_chunks(ids: Ids) -> list[Call]:
    chunk_keys = [f"subagent/{ids.patrol}/report-index", f"subagent/{ids.patrol}/report-chunk0"]
    full_value = Call(404, {"key": ids.working_key}, {"full": "true"})
    return [full_value, *(Call(404, {"key": key}) for key in chunk_keys)]


def _search_of_its_text(ids: Ids) -> list[Call]:
    return [Call(200, body={"query": ids.content})]


# The owner sends it with an idempotency key; then other tenants send it with the same key.
MESSAGE = {"message": "the gate", "explain": True}
SIGNAL = {"type": "UserThumbsUp", "summary": "slipped in"}
TURN = {"role": "user", "content": "slipped in"}
_USAGE = {"usage_id": "slipped-in", "model": "m", "usage": {"total_tokens": 7}}
_VALUE = {"value": "slipped in"}
_DOC = {"type": "doc", "value": {"slipped": "in"}}
_VECTOR = {"vector": [1.0, 0.0]}
_OBSERVATION = {"kind": "fact", "content": "slipped in"}
_REPORT = {"title": "slipped in", "content": "slipped in"}
_PROFILE = {"public_key": "mine", "document": "mine", "store_types": ["tmp"]}
_LIMIT = {"period": "day", "limit_tokens": 10**9}
_DIRECTIVE = {"name": "memory-rules"}
_MODEL = {"model": "m"}
_S = "/v1/sessions/{session_id}"
_A = "/v1/agents/{agent_id}"
_T = "/v1/stores/{name}"

ROUTES: dict[str, RecordRoute] = {
    "GET /v1/memories/{memory_id}": _reads(MEMORY),
    "GET /v1/memories/{memory_id}/history": _reads(MEMORY),
    "PATCH /v1/memories/{memory_id}": _writes(MEMORY, body={"importance": 0.1}, more=_updates),
    # Deleting an unknown id is no error.
    "DELETE /v1/memories/{memory_id}": _writes(MEMORY, status=200),
    "POST /v1/memories/{memory_id}/archive": _writes(MEMORY),
    "POST /v1/memories/{memory_id}/restore": _writes(MEMORY),
    "POST /v1/memories/{memory_id}/revert": _writes(MEMORY, body={"version": 1}),
    # 409: nothing contests it.
    "POST /v1/memories/{memory_id}/resolve": _writes(MEMORY, body={"keep": "0123456789ab"}),
    # 409: without a language model nothing is enriched.
    "POST /v1/memories/{memory_id}/enrich": _writes(MEMORY),
    "GET /v1/memories/by-key": _reads(KEY),
    "DELETE /v1/memories/by-key": _writes(KEY, status=200),
    f"GET {_S}": _reads(SESSION),
    f"PATCH {_S}": _writes(SESSION, body={"metadata": {"slipped": "in"}}),
    f"DELETE {_S}": _writes(SESSION),
    f"POST {_S}/turns": _writes(SESSION, body=TURN, is_repeatable=True),
    f"POST {_S}/turns/batch": _writes(SESSION, body={"turns": [TURN]}, is_repeatable=True),
    f"GET {_S}/turns": _reads(SESSION),
    f"DELETE {_S}/turns": _writes(SESSION),
    f"POST {_S}/turns/pop": _writes(SESSION, is_repeatable=True),
    # 409: without a user, turns are mined only where the agent says so.
    f"POST {_S}/mine": _writes(MINED_SESSION, is_repeatable=True),
    f"GET {_S}/turns/{{seq}}": _reads(SESSION),
    f"PATCH {_S}/turns/{{seq}}": _writes(SESSION, body={"content": "mine"}),
    f"DELETE {_S}/turns/{{seq}}": _writes(SESSION),
    f"GET {_S}/turns/export": _reads(SESSION),
    f"POST {_S}/context": _writes(SESSION, body=MESSAGE, is_repeatable=True),
    f"POST {_S}/feedback": _writes(SESSION, body=SIGNAL, is_repeatable=True),
    "POST /v1/feedback": _writes(SESSION_IN_BODY, body=SIGNAL, is_repeatable=True),
    f"GET {_S}/working-memory": _reads(SESSION),
    f"GET {_S}/kv": _reads(SESSION),
    f"PUT {_S}/kv/{{key}}": _writes(SESSION, body=_VALUE, made={"key": "new"}),
    f"GET {_S}/kv/{{key}}": _reads(SESSION),
    f"DELETE {_S}/kv/{{key}}": _writes(SESSION),
    f"POST {_S}/transcript": _writes(SESSION, body=TURN, is_repeatable=True),
    f"GET {_S}/transcript": _reads(SESSION),
    f"GET {_S}/collections": _reads(SESSION),
    f"PUT {_S}/collections/{{label}}": _writes(SESSION, body=_DOC, made={"label": "new"}),
    f"GET {_S}/collections/{{label}}": _reads(SESSION),
    f"DELETE {_S}/collections/{{label}}": _writes(SESSION),
    f"POST {_S}/collections/{{label}}/search": _reads(SESSION, body=_VECTOR),
    f"GET {_S}/files": _reads(SESSION),
    f"GET {_S}/files/{{name}}": _reads(SESSION),
    f"POST {_S}/spend": _writes(SESSION, body=_USAGE, is_repeatable=True),
    f"GET {_S}/spend": _reads(SESSION),
    f"POST {_S}/observations": _writes(SESSION, body=_OBSERVATION, is_repeatable=True),
    f"GET {_S}/observations": _reads(SESSION),
    f"POST {_S}/scratchpad": _writes(SESSION, body={"content": "slipped in"}, is_repeatable=True),
    f"GET {_S}/scratchpad": _reads(SESSION),
    f"POST {_S}/scratchpad/promote": _writes(SESSION, body={"reason": "asked"}, is_repeatable=True),
    f"GET {_S}/scratchpad/promotions": _reads(SESSION),
    f"POST {_S}/report": _writes(SESSION, body=_REPORT, is_repeatable=True),
    "GET /v1/playbooks/{playbook_id}": _reads(PLAYBOOK),
    "DELETE /v1/playbooks/{playbook_id}": _writes(PLAYBOOK, status=200),
    "GET /v1/graph/entities/{entity_id}": _reads(ENTITY),
    "DELETE /v1/graph/entities/{entity_id}": _writes(ENTITY, status=200),
    "GET /v1/graph/triples/{triple_id}": _reads(TRIPLE),
    "DELETE /v1/graph/triples/{triple_id}": _writes(TRIPLE, status=200),
    "POST /v1/graph/triples/{triple_id}/invalidate": _writes(TRIPLE, body={"reason": "over"}),
    "POST /v1/graph/triples/{triple_id}/restore": _writes(TRIPLE_THAT_IS_OVER),
    "GET /v1/patterns": _reads(TENANT, status=200, more=lambda _: [Call(200, query={"flow": "letters"})]),
    "GET /v1/patterns/consent": _reads(TENANT, status=200),
    "PUT /v1/patterns/consent": _writes(TENANT, status=200, body={"consent": True}),
    "POST /v1/documents": _writes(UPLOAD, status=202),
    "GET /v1/documents": _reads(TENANT, status=200),
    "GET /v1/documents/{document_id}": _reads(DOCUMENT),
    "DELETE /v1/documents/{document_id}": _writes(DOCUMENT, status=200),
    "POST /v1/documents/search": _reads(
        TENANT, status=200, body={"query": "gate opens at seven"}, more=_search_of_its_text
    ),
    "GET /v1/business-context": _reads(TENANT, status=200),
    "PUT /v1/business-context": _writes(BUSINESS_CONTEXT, status=200, body={"content": "mine"}),
    "GET /v1/dreams/{run_id}": _reads(RUN),
    "GET /v1/dreams/{run_id}/diff": _reads(RUN),
    "POST /v1/dreams/{run_id}/undo": _writes(RUN),
    f"PUT {_A}": _writes(AGENT, status=200, body=_PROFILE),
    f"GET {_A}": _reads(AGENT),
    f"GET {_A}/kv": _reads(AGENT, status=200),
    f"PUT {_A}/kv/{{key}}": _writes(AGENT, status=200, body={"value": "mine"}),
    f"GET {_A}/kv/{{key}}": _reads(AGENT),
    f"DELETE {_A}/kv/{{key}}": _writes(AGENT, status=200),
    f"POST {_A}/texts": _writes(AGENT, status=201, body={"content": "mine"}, is_repeatable=True),
    f"GET {_A}/texts": _reads(AGENT, status=200),
    f"PUT {_A}/texts": _writes(AGENT, status=200, body={"texts": [{"content": "mine"}]}),
    f"DELETE {_A}/texts": _writes(AGENT, status=200),
    f"GET {_A}/texts/{{text_id}}": _reads(AGENT),
    f"DELETE {_A}/texts/{{text_id}}": _writes(AGENT, status=200),
    f"GET {_A}/files": _reads(AGENT, status=200),
    f"PUT {_A}/files/{{name}}": _writes(AGENT, status=200, content=b"mine"),
    f"GET {_A}/files/{{name}}": _reads(AGENT),
    f"DELETE {_A}/files/{{name}}": _writes(AGENT, status=200),
    f"GET {_T}": _reads(STORE, status=200),
    f"DELETE {_T}": _writes(STORE, status=200),
    f"GET {_T}/kv": _reads(STORE, status=200),
    f"PUT {_T}/kv/{{key}}": _writes(WRITTEN_STORE, status=200, body=_VALUE, made={"key": "new"}),
    f"GET {_T}/kv/{{key}}": _reads(STORE),
    f"DELETE {_T}/kv/{{key}}": _writes(STORE, status=200),
    f"GET {_T}/collections": _reads(STORE, status=200),
    f"PUT {_T}/collections/{{label}}": _writes(WRITTEN_STORE, status=200, body=_DOC, made={"label": "new"}),
    f"GET {_T}/collections/{{label}}": _reads(STORE),
    f"DELETE {_T}/collections/{{label}}": _writes(STORE, status=200),
    f"POST {_T}/collections/{{label}}/search": _reads(STORE, body=_VECTOR),
    # A tenant without these sessions writes its own entries under the same keys.
    "PUT /v1/working/{key}": _writes(*ENTRIES, status=200, absent=404, body={"value": "mine"}),
    "GET /v1/working/{key}": _reads(*ENTRIES, more=_full_value_and_chunks),
    "PATCH /v1/working/{key}": _writes(*ENTRIES, body={"append": "mine"}),
    "DELETE /v1/working/{key}": _writes(*ENTRIES, status=200, absent=404),
    "DELETE /v1/working": _writes(*NAMESPACES, status=200, absent=404),
    "GET /v1/pinned/{name}": _reads(PINNED_TEXT),
    "DELETE /v1/pinned/{name}": _writes(PINNED_TEXT, status=200),
    "GET /v1/skills/{skill}": _reads(SKILL),
    "GET /v1/skills/{skill}/versions": _reads(SKILL),
    "GET /v1/skills/{skill}/export": _reads(SKILL),
    "GET /v1/skills/{skill}/files/{path}": _reads(SKILL),
    "DELETE /v1/skills/{skill}": _writes(SKILL, status=200),
    "GET /v1/preferences/{key}": _reads(PREFERENCE),
    "DELETE /v1/preferences/{key}": _writes(PREFERENCE, status=200),
    "GET /v1/directives": _reads(TENANT, status=200),
    "GET /v1/directives/{name}": _reads(TENANT, status=200, path=_DIRECTIVE),
    "GET /v1/directives/{name}/history": _reads(TENANT, status=200, path=_DIRECTIVE),
    "PUT /v1/directives/{name}": _writes(TENANT, status=200, path=_DIRECTIVE, body={"text": "mine"}),
    "GET /v1/prices": _reads(TENANT, status=200),
    "PUT /v1/prices/{model}": _writes(TENANT, status=200, path=_MODEL, body={"input": 1}),
    "DELETE /v1/prices/{model}": _writes(TENANT, status=200, path=_MODEL),
    "GET /v1/budgets": _reads(TENANT, status=200),
    "GET /v1/budgets/{scope}": _reads(BUDGET),
    "PUT /v1/budgets/{scope}": _writes(SET_BUDGET, status=200, body=_LIMIT),
    "DELETE /v1/budgets/{scope}": _writes(SET_BUDGET, status=200, made={"scope": "agent/unused"}),
    "GET /v1/status": _reads(TENANT, status=200),
    "GET /v1/models": _reads(TENANT, status=200),
}
