"""Each broken rule is a 422 that names field and rule, and stores nothing (LT2, WM1, WM5, SE1)."""

from typing import Any

import pytest

from tests.badinput import problem
from tests.badinput.conftest import SESSION, CheckedGateway

MEMORIES, TURNS = "/v1/memories", f"/v1/sessions/{SESSION}/turns"
ENTRY = "/v1/working/session/talk/note"
CONTEXT = f"/v1/sessions/{SESSION}/context"
RefusedRequest = tuple[str, str, dict[str, Any], str, str]


def _memory(field: str, rule: str, **fields: Any) -> RefusedRequest:
    return "POST", MEMORIES, {"content": "a fact", **fields}, field, rule


def _turn(field: str, rule: str, **fields: Any) -> RefusedRequest:
    return "POST", TURNS, {"role": "user", "content": "said", **fields}, field, rule


CATEGORIES = [
    ("../x", "'..' segment"),
    ("a/../b", "'..' segment"),
    ("/abs", "absolute"),
    ("", "blank"),
    ("   ", "blank"),
    ("general\n", "segments of ASCII"),
    ("a//b", "segments of ASCII"),
    ("a/", "segments of ASCII"),
    ("привет", "segments of ASCII"),
    ("a b", "segments of ASCII"),
    ("a" * 257, "at most 256"),
]

MEMORY = [
    *(_memory("category", rule, category=category) for category, rule in CATEGORIES),
    _memory("content", "blank", content=""),
    _memory("content", "blank", content=" \n\t"),
    _memory("content", "string", content=1),
    _memory("content", "string", content=None),
    _memory("content", "string", content=["a"]),
    _memory("colour", "Extra inputs", colour="red"),
    _memory("tenant", "Extra inputs", tenant="somebody"),
    _memory("tags", "list", tags="travel"),
    _memory("tags.0", "string", tags=[1]),
    _memory("tags.0", "blank", tags=[" "]),
    _memory("tags.1", "line breaks", tags=["a", "b\nc"]),
    _memory("tags", "at most 64 tags", tags=[f"t{i}" for i in range(65)]),
    _memory("tags.0", "at most 64 characters", tags=["t" * 65]),
    _memory("metadata.a", "string", metadata={"a": 1}),
    _memory("metadata", "at most 64 pairs", metadata={f"k{i}": "" for i in range(65)}),
    _memory("metadata.0", "at most 64", metadata={"k" * 65: ""}),
    _memory("metadata.k", "at most 1024", metadata={"k": "v" * 1025}),
    _memory("metadata.0", "blank", metadata={" ": ""}),
    _memory("importance", "less than or equal to 1", importance=1.5),
    _memory("importance", "greater than or equal to 0", importance=-0.1),
    _memory("importance", "number", importance="0.5"),
    _memory("importance", "number", importance=True),
    _memory("importance", "finite", importance=float("nan")),
    _memory("importance", "finite", importance=float("inf")),
    _memory("enrich", "boolean", enrich="yes"),
    _memory("occurred_at", "datetime", occurred_at="yesterday"),
    _memory("occurred_at", "years", occurred_at="0001-01-01T00:00:00+14:00"),
    _memory("occurred_at", "years", occurred_at="9999-12-31T23:59:59-14:00"),
    _memory("source.session_id", "Field required", source={}),
    _memory("source.session_id", "absolute", source={"session_id": "/abs"}),
    _memory("source.seq", "integer", source={"session_id": "s", "seq": "1"}),
    _memory("source.seq", "less than or equal", source={"session_id": "s", "seq": 2**31}),
    _memory("source.seq", "less than or equal", source={"session_id": "s", "seq": 10**30}),
    _memory("source.line", "Extra inputs", source={"session_id": "s", "line": 1}),
    _memory("source.speaker", "at most 128", source={"session_id": "s", "speaker": "x" * 129}),
    _memory("agent_id", "blank", agent_id=" "),
    _memory("agent_id", "printable", agent_id="a\nb"),
    _memory("user_id", "at most 128", user_id="u" * 129),
]

_SEARCHES: list[tuple[dict[str, Any], str, str]] = [
    ({"limit": 0}, "limit", "greater than or equal to 1"),
    ({"limit": 101}, "limit", "less than or equal to 100"),
    ({"limit": "5"}, "limit", "integer"),
    ({"limit": 2.5}, "limit", "integer"),
    ({"query": 5}, "query", "string"),
    ({"query": "q" * 16_001}, "query", "at most 16000"),
    ({"query": "x", "strategy": "magic"}, "strategy", "one of"),
    ({"min_similarity": 2}, "min_similarity", "less than or equal to 1"),
    ({"state": "lost"}, "state", "pending"),
    ({"category": "../x"}, "category", "'..' segment"),
    ({"explain": 1}, "explain", "boolean"),
    ({"created_after": "soon"}, "created_after", "datetime"),
    ({"created_after": "0001-01-01T00:00:00+14:00"}, "created_after", "years"),
    ({"occurred_before": "9999-12-31T23:59:59-14:00"}, "occurred_before", "years"),
    ({"order": "asc"}, "order", "Extra inputs"),
]
SEARCH: list[RefusedRequest] = [("POST", f"{MEMORIES}/search", *search) for search in _SEARCHES]

CONVERSATION = [
    _turn("role", "user", role="robot"),
    _turn("content", "blank", content=" "),
    _turn("content", "string", content=7),
    _turn("speaker", "at most 128", speaker="s" * 129),
    _turn("created_at", "years", created_at="0001-01-01T00:00:00+14:00"),
    _turn("metadata.k", "string", metadata={"k": None}),
    _turn("usage", "dictionary", usage=3),
    _turn("mood", "Extra inputs", mood="glad"),
    ("POST", CONTEXT, {"message": ""}, "message", "blank"),
    ("POST", CONTEXT, {}, "message", "Field required"),
    ("POST", CONTEXT, {"message": "m", "max_tokens": 0}, "max_tokens", "greater than or equal to 1"),
    ("POST", CONTEXT, {"message": "m", "record_turn": "no"}, "record_turn", "boolean"),
    ("POST", "/v1/sessions", {"id": "../x"}, "id", "'..' segment"),
    ("POST", "/v1/sessions", {"id": "x\n"}, "id", "segments of ASCII"),
    ("POST", "/v1/sessions", {"id": "x" * 129}, "id", "at most 128"),
    ("POST", "/v1/sessions", {"kind": "party"}, "kind", "session"),
    ("POST", "/v1/sessions", {"name": "/abs"}, "name", "absolute"),
    ("POST", "/v1/sessions", {"store_types": ["paper"]}, "store_types", "unknown store type"),
    ("POST", "/v1/sessions", {"ttl_seconds": 0}, "ttl_seconds", "greater than or equal to 1"),
    ("POST", "/v1/sessions", {"ttl_seconds": 10**12}, "ttl_seconds", "less than or equal"),
    ("POST", "/v1/turns/search", {"query": ""}, "query", "at least 1"),
    ("POST", "/v1/turns/search", {"query": "q", "limit": 101}, "limit", "less than or equal to 100"),
    (
        "POST",
        "/v1/turns/search",
        {"query": "q", "created_before": "0001-01-01T00:00:00+14:00"},
        "created_before",
        "years",
    ),
]

WORKING = [
    ("PUT", "/v1/working/a/%2e%2e/b", {"value": "v"}, "key", "segment"),
    ("PUT", "/v1/working/a%20b", {"value": "v"}, "key", "segments of ASCII"),
    ("PUT", "/v1/working/a//b", {"value": "v"}, "key", "segments of ASCII"),
    ("PUT", "/v1/working/session/talk/x%0A", {"value": "v"}, "path", "control characters"),
    ("PUT", f"/v1/working/session/talk/{'k' * 513}", {"value": "v"}, "key", "at most 512"),
    ("PUT", "/v1/working/session/talk/big-index", {"value": "v"}, "key", "read-only"),
    ("PUT", "/v1/working/session/talk/big-chunk0", {"value": "v"}, "key", "read-only"),
    ("PUT", ENTRY, {"value": 1}, "value", "string"),
    ("PUT", ENTRY, {}, "value", "Field required"),
    ("PUT", ENTRY, {"value": "v", "ttl_seconds": 0}, "ttl_seconds", "greater than 0"),
    ("PUT", ENTRY, {"value": "v", "ttl_seconds": -1}, "ttl_seconds", "greater than 0"),
    ("PUT", ENTRY, {"value": "v", "ttl_seconds": 1e12}, "ttl_seconds", "at most"),
    ("PUT", ENTRY, {"value": "v", "ttl_seconds": float("inf")}, "ttl_seconds", "finite"),
    ("PUT", ENTRY, {"value": "v", "category": "/abs"}, "category", "absolute"),
    ("PUT", ENTRY, {"value": "v", "tags": ["a\nb"]}, "tags.0", "line breaks"),
    ("PUT", ENTRY, {"value": "v", "ttl": 5}, "ttl", "Extra inputs"),
    ("PUT", f"{ENTRY}?namespace=alone", {"value": "v"}, "namespace", "two segments"),
    ("POST", "/v1/working/search", {"limit": 0}, "limit", "greater than or equal to 1"),
    ("POST", "/v1/working/search", {"prefix": "/abs"}, "prefix", "absolute"),
    ("POST", "/v1/working/search", {"category": "../x"}, "category", "'..' segment"),
]


_SIGNAL = {"type": "Correction", "summary": "it was Paris"}
DIRECTIVE = "/v1/directives/memory-rules"
FEEDBACK_AND_DREAMS: list[RefusedRequest] = [
    ("POST", f"/v1/sessions/{SESSION}/feedback", {**_SIGNAL, "type": "Applause"}, "type", "Correction"),
    ("POST", f"/v1/sessions/{SESSION}/feedback", {**_SIGNAL, "summary": " "}, "summary", "blank"),
    ("POST", f"/v1/sessions/{SESSION}/feedback", {**_SIGNAL, "summary": "s" * 501}, "summary", "at most 500"),
    ("POST", f"/v1/sessions/{SESSION}/feedback", {**_SIGNAL, "detail": "d" * 4001}, "detail", "at most 4000"),
    ("POST", "/v1/feedback", _SIGNAL, "session_id", "required"),
    ("POST", "/v1/feedback", {**_SIGNAL, "session_id": "/abs"}, "session_id", "absolute"),
    ("PUT", DIRECTIVE, {}, "text", "required"),
    ("PUT", DIRECTIVE, {"text": "t" * 100_001}, "text", "at most 100000"),
    ("POST", "/v1/dreams", {"passes": ["sleepwalking"]}, "passes.0", "consolidat"),
    ("POST", "/v1/dreams", {"dry_run": "yes"}, "dry_run", "boolean"),
]


def _playbook(field: str, rule: str, **fields: Any) -> RefusedRequest:
    body = {"flow_dact": "f", "slots": {}, "tool_calls": [], "outcome": "success", "user_query": "q"}
    return "POST", "/v1/playbooks", {**body, **fields}, field, rule


PLAYBOOKS: list[RefusedRequest] = [
    _playbook("flow_dact", "ASCII letters", flow_dact="book a flight"),
    _playbook("flow_dact", "at most 64", flow_dact="f" * 65),
    _playbook("slots", "16384 bytes", slots={"s": "x" * 16_400}),
    _playbook("slots", "64 bits", slots={"s": 2**65}),
    _playbook("tool_calls", "at most 32", tool_calls=[{"tool_id": "t"}] * 33),
    _playbook("tool_calls.0.tool_id", "ASCII letters", tool_calls=[{"tool_id": "Ada's tool"}]),
    _playbook(
        "tool_calls.0.parameters", "4096", tool_calls=[{"tool_id": "t", "parameters": {"p": "x" * 4100}}]
    ),
    _playbook("outcome", "must be one of", outcome="fine"),
    _playbook("user_query", "blank", user_query=" "),
    _playbook("user_query", "at most 4000", user_query="q" * 4001),
    _playbook("satisfied", "boolean", satisfied="yes"),
    ("POST", "/v1/playbooks/search", {}, "query", "flow or a query"),
    ("POST", "/v1/playbooks/search", {"flow": "a flow"}, "flow", "ASCII letters"),
    ("POST", "/v1/playbooks/search", {"query": ""}, "query", "blank"),
    ("PUT", "/v1/patterns/consent", {"consent": "yes"}, "consent", "boolean"),
]


_SKILL = "/v1/skills/bake-bread"
_PROPOSAL = "/v1/proposals/p"
PROPOSALS: list[RefusedRequest] = [
    ("POST", _PROPOSAL, {"action": "burn"}, "action", "approve"),
    ("POST", _PROPOSAL, {"action": "refuse", "edited": "It is so."}, "edited", "action 'approve'"),
    ("POST", _PROPOSAL, {"action": "approve", "edited": " "}, "edited", "blank"),
    ("POST", _PROPOSAL, {"action": "approve", "edited": "c" * 16_001}, "edited", "at most 16000"),
    ("POST", _PROPOSAL, {"action": "refuse", "reason": "r" * 501}, "reason", "at most 500"),
]
SKILLS: list[RefusedRequest] = [
    ("PUT", "/v1/skills/Bake", {"content": "c"}, "name", "lower-case letters"),
    ("PUT", "/v1/skills/a--b", {"content": "c"}, "name", "single '-'"),
    ("PUT", f"/v1/skills/{'a' * 65}", {"content": "c"}, "name", "at most 64"),
    ("PUT", "/v1/skills/import", {"content": "c"}, "name", "must not be one of"),
    ("PUT", _SKILL, {"content": " "}, "content", "blank"),
    ("PUT", _SKILL, {"content": "c" * 64_001}, "content", "at most 64000"),
    ("PUT", _SKILL, {"content": "c", "summary": "w " * 16}, "summary", "15 words"),
    ("PUT", _SKILL, {"content": "c", "summary": "a\nb"}, "summary", "line breaks"),
    ("PUT", _SKILL, {"content": "c", "see_also": ["a"] * 3 + ["No"]}, "see_also.1", "lower-case letters"),
    ("PUT", _SKILL, {"content": "c", "see_also": [f"s{n}" for n in range(33)]}, "see_also", "at most 32"),
    ("POST", "/v1/skills/search", {"query": ""}, "query", "at least 1"),
]


def _triple(field: str, rule: str, **fields: Any) -> RefusedRequest:
    body = {"subject": "Ada", "predicate": "knows", "object": "Bob"}
    return "POST", "/v1/graph/triples", {**body, **fields}, field, rule


GRAPH: list[RefusedRequest] = [
    ("POST", "/v1/graph/entities", {"name": " "}, "name", "blank"),
    ("POST", "/v1/graph/entities", {"name": "a\nb"}, "name", "line breaks"),
    ("POST", "/v1/graph/entities", {"name": "n" * 201}, "name", "at most 200"),
    ("POST", "/v1/graph/entities", {"name": "Ada", "type": "Alien"}, "type", "Person"),
    ("POST", "/v1/graph/entities", {"name": "Ada", "aliases": ["A"] * 10_000}, "aliases", "at most 64"),
    ("POST", "/v1/graph/entities", {"name": "Ada", "aliases": ["\u2028"]}, "aliases.0", "blank"),
    _triple("subject", "blank", subject=""),
    _triple("subject", "that is there", subject="01900000-0000-7000-8000-000000000000"),
    _triple("predicate", "letter", predicate="->"),
    _triple("object", "a literal", object=None),
    _triple("object", "a literal", literal="both"),
    _triple("literal", "at most 1000", object=None, literal="x" * 1001),
    _triple("fact", "at most 2000", fact="x" * 2001),
    _triple("confidence", "less than or equal to 1", confidence=1.5),
    _triple(
        "invalid_at", "before valid_at", valid_at="2026-02-01T00:00:00Z", invalid_at="2026-01-01T00:00:00Z"
    ),
    _triple("valid_at", "years", valid_at="0001-01-01T00:00:00+14:00"),
    _triple("source", "must name", source={}),
    _triple("source.seq", "number of a turn", source={"memory_id": "0123456789ab", "seq": 1}),
    ("POST", "/v1/graph/traverse", {}, "entity", "must be given"),
    ("POST", "/v1/graph/traverse", {"entity": "Ada", "hops": 3}, "hops", "less than or equal to 2"),
    ("POST", "/v1/graph/traverse", {"names": ["Ada"] * 21}, "names", "at most 20"),
    ("POST", "/v1/graph/match", {"text": " "}, "text", "blank"),
]


REFUSED = [
    *PROPOSALS,
    *SKILLS,
    *MEMORY,
    *SEARCH,
    *CONVERSATION,
    *WORKING,
    *FEEDBACK_AND_DREAMS,
    *PLAYBOOKS,
    *GRAPH,
]


def _invisible(value: Any) -> Any:
    """Return a value in which a zero-width space stands for each blank text."""
    if isinstance(value, dict):
        return {_invisible(key): _invisible(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_invisible(inner) for inner in value]
    return "\u200b" if isinstance(value, str) and not value.strip() else value


INVISIBLE = [
    (method, path, _invisible(body), field, rule)
    for method, path, body, field, rule in REFUSED
    if rule == "blank" and _invisible(body) != body
]


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "rule"),
    [*REFUSED, *INVISIBLE],
    ids=lambda value: None if isinstance(value, dict) else str(value)[:40],
)
async def test_a_broken_rule_is_a_422_that_names_it_and_stores_nothing(
    gateway: CheckedGateway, method: str, path: str, body: dict[str, Any], field: str, rule: str
) -> None:
    async with gateway.unchanged():
        response = await gateway.send(method, path, body)
    assert response.status_code in (413, 422), response.text
    assert problem.names_violation(response, field, rule), response.text


QUERIES = [
    (MEMORIES, "limit", "0", "greater than or equal to 1"),
    (MEMORIES, "limit", "101", "less than or equal to 100"),
    (MEMORIES, "limit", "many", "integer"),
    (MEMORIES, "limit", "9" * 40, "less than or equal to 100"),
    (MEMORIES, "state", "lost", "pending"),
    (MEMORIES, "category", "../x", "'..' segment"),
    (MEMORIES, "category", "general\n", "segments of ASCII"),
    (MEMORIES, "created_after", "soon", "datetime"),
    (MEMORIES, "created_before", "0001-01-01T00:00:00+14:00", "years"),
    (MEMORIES, "user_id", " ", "blank"),
    (MEMORIES, "agent_id", "a\tb", "printable"),
    (f"{MEMORIES}/export", "agent_id", "x" * 129, "at most 128"),
    (TURNS, "last", "0", "greater than or equal to 1"),
    (TURNS, "last", "101", "less than or equal to 100"),
    ("/v1/sessions", "limit", "0", "greater than or equal to 1"),
    ("/v1/sessions", "limit", "101", "less than or equal to 100"),
    ("/v1/sessions", "kind", "party", "session"),
    ("/v1/playbooks", "flow", "a flow", "ASCII letters"),
    ("/v1/patterns", "flow", "a flow", "ASCII letters"),
    ("/v1/working", "prefix", "/abs", "absolute"),
    ("/v1/working", "prefix", "a/../b", "'..' segment"),
    ("/v1/working", "namespace", "alone", "two segments"),
]


@pytest.mark.parametrize(("path", "field", "value", "rule"), QUERIES)
async def test_a_bad_query_parameter_is_a_422_that_names_it(
    gateway: CheckedGateway, path: str, field: str, value: str, rule: str
) -> None:
    response = await gateway.client.get(path, params={field: value})
    assert problem.names_violation(response, field, rule), response.text


CURSORS = [
    "x",
    "",
    "%%%",
    "курсор",
    "bm9uc2Vuc2U=",  # nonsense
    "MjAyNi0wMS0wMVQwMDowMDowMCBhYmM=",  # a time without a zone
    "MjAyNi0wMS0wMVQwMDowMDowMCswMDowMCA=",  # no id
    "MjAyNi0wMS0wMVQwMDowMDowMCswMDowMCBhAGI=",  # an id with a NUL
    "MDAwMS0wMS0wMVQwMDowMDowMCsxNDowMCBhYmM=",  # before the first year
    "OTk5OS0xMi0zMVQyMzo1OTo1OS0xNDowMCBhYmM=",  # after the last year
]


@pytest.mark.parametrize("cursor", CURSORS)
@pytest.mark.parametrize("path", [MEMORIES, "/v1/sessions", f"/v1/sessions/{SESSION}/kv"])
async def test_a_cursor_that_no_list_has_returned_is_refused(
    gateway: CheckedGateway, path: str, cursor: str
) -> None:
    response = await gateway.client.get(path, params={"cursor": cursor})
    assert problem.names_violation(response, "cursor", "not one that a list has returned"), response.text


async def test_wm5_clearing_an_empty_prefix_is_refused(gateway: CheckedGateway) -> None:
    async with gateway.unchanged():
        empty = await gateway.client.delete("/v1/working", params={"prefix": ""})
        missing = await gateway.client.delete("/v1/working")
    assert problem.names_violation(empty, "prefix", "empty")
    assert problem.names_violation(missing, "prefix", "required")


async def test_an_update_to_null_is_refused_and_changes_nothing(gateway: CheckedGateway) -> None:
    saved = (await gateway.client.post(MEMORIES, json={"content": "stays as it is"})).json()
    async with gateway.unchanged():
        for body, field in [({"content": None}, "content"), ({"tags": None}, "tags"), ({"id": "x"}, "id")]:
            response = await gateway.client.patch(f"{MEMORIES}/{saved['id']}", json=body)
            assert problem.names_violation(response, field), response.text


async def test_a_bad_item_of_a_batch_is_reported_at_its_position_and_the_others_are_stored(
    gateway: CheckedGateway,
) -> None:
    items: list[Any] = [{"content": "good one"}, {"content": ""}, {"content": "x", "category": "../x"}, {}]
    mixed = await gateway.client.post(f"{MEMORIES}/batch", json={"memories": items})
    assert mixed.status_code == 201
    results = mixed.json()["results"]
    assert results[0]["content"] == "good one"
    assert [result["errors"][0]["field"] for result in results[1:]] == ["content", "category", "content"]
    assert [result["status"] for result in results[1:]] == [422, 422, 422]
    async with gateway.unchanged():
        bad = await gateway.client.post(f"{MEMORIES}/batch", json={"memories": items[1:]})
    assert bad.status_code == 422
    assert [result["status"] for result in bad.json()["results"]] == [422, 422, 422]


@pytest.mark.parametrize("path", [f"{MEMORIES}/batch", f"{TURNS}/batch"])
async def test_a_batch_holds_one_to_a_thousand_items(gateway: CheckedGateway, path: str) -> None:
    name = "memories" if path.startswith(MEMORIES) else "turns"
    async with gateway.unchanged():
        for count, rule in [(0, "at least 1"), (1001, "at most 1000")]:
            response = await gateway.client.post(path, json={name: [{}] * count})
            assert problem.names_violation(response, name, rule), response.text
