"""The requests of bound keys: for each route of the OpenAPI document, one that names a record of an owner.

A route without a case fails `test_rights.py`. `RECORDS` are routes to one record, which a path or a body
names; `record_routes.py` declares them. `SCOPES` name an agent and a user instead. `LISTS` show the records
that a key may read.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.isolation.calls import Call
from tests.isolation.record_routes import ROUTES, RecordRoute
from tests.isolation.records import WORKING_AREAS, Record
from tests.isolation.rights_table import Owner
from tests.isolation.rights_world import (
    PLAYBOOK,
    World,
    entity_line,
    new_name,
    preference_of,
    to_lines,
    triple_of,
)
from tests.skill_archives import zip_of_skill


class RecordCase(NamedTuple):
    """A request on one record: how the route is called, and the kind of record."""

    called: RecordRoute
    record: Record

    @property
    def area(self) -> str:
        """The row of the table."""
        return self.record.area

    @property
    def writes(self) -> bool:
        """Whether the request writes."""
        return self.called.writes

    @property
    def absent(self) -> int:
        """The status for a record that does not exist."""
        return self.called.status if self.called.absent is None else self.called.absent

    async def make(self, world: World, owner: Owner) -> Call:
        """Make a record of an owner, and return the request for it."""
        return self.called.call_for(await self.record.make(world, owner))


class ScopeCase(NamedTuple):
    """A write that names an agent and a user, in its query or in its body, and its other fields."""

    area: str
    in_body: bool
    fields: Callable[[], dict[str, Any]]


class ListCase(NamedTuple):
    """A list or a search: the row of the table, and the fields of its body; None for a query."""

    area: str
    body: dict[str, Any] | None = None
    query: dict[str, str] = {}
    has_words: bool = True


def uses_up(route: str, case: RecordCase) -> bool:
    """Return whether a write needs a record that no other request asks for.

    What a session, a store or an agent is only added to can be asked for again; making another takes five
    requests.
    """
    lasts = case.area in {"session", "store", "agent", *WORKING_AREAS}
    return not lasts or route.startswith("DELETE") or route.endswith(("/pop", "/promote", "/{label}"))


_NAMED = {"field": "metadata.name", "op": "eq", "value": "nobody"}


RECORDS = {
    route: [RecordCase(called, record) for record in called.records] for route, called in ROUTES.items()
}

SCOPES: dict[str, ScopeCase] = {
    "POST /v1/memories": ScopeCase("memory", True, lambda: {"content": new_name()}),
    "POST /v1/memories/batch": ScopeCase("memory", True, lambda: {"content": new_name()}),
    "PUT /v1/memories/by-key": ScopeCase("memory", True, lambda: {"content": new_name()}),
    "POST /v1/memories/delete": ScopeCase("memory", True, lambda: {"filter": dict(_NAMED)}),
    "POST /v1/memories/import": ScopeCase("memory", False, lambda: {"content": new_name()}),
    "POST /v1/import": ScopeCase("memory", False, lambda: {"content": new_name()}),
    "POST /v1/sessions": ScopeCase("session", True, lambda: {"id": new_name()}),
    "PUT /v1/pinned/{name}": ScopeCase("memory", True, lambda: {"content": new_name()}),
    "PUT /v1/preferences/{key}": ScopeCase("memory", True, lambda: preference_of(new_name())),
    "PUT /v1/skills/{skill}": ScopeCase("memory", True, lambda: {"content": new_name()}),
    "POST /v1/skills/import": ScopeCase("memory", False, lambda: {"name": new_name().lower()}),
    "POST /v1/playbooks": ScopeCase("memory", True, lambda: {**PLAYBOOK, "flow_dact": new_name()}),
    "POST /v1/graph/entities": ScopeCase("memory", True, lambda: {"name": new_name()}),
    "POST /v1/graph/triples": ScopeCase("memory", True, lambda: triple_of(new_name())),
    "POST /v1/graph/import": ScopeCase("memory", False, entity_line),
    "POST /v1/dreams": ScopeCase("session", True, lambda: {"dry_run": True}),
}

LISTS: dict[str, ListCase] = {
    "GET /v1/memories": ListCase("memory", query={"limit": "100"}),
    "GET /v1/memories/export": ListCase("memory"),
    "GET /v1/export": ListCase("memory"),
    "GET /v1/memories/categories": ListCase("memory"),
    "GET /v1/memories/tags": ListCase("memory"),
    "GET /v1/namespaces": ListCase("memory"),
    "POST /v1/memories/search": ListCase("memory", {"query": "the word", "limit": 100}),
    "GET /v1/playbooks": ListCase("memory", query={"limit": "100"}),
    "POST /v1/playbooks/search": ListCase("memory", {"query": "the word", "limit": 100}),
    "GET /v1/graph/entities": ListCase("memory", query={"limit": "100"}),
    "GET /v1/graph/triples": ListCase("memory", query={"limit": "100"}),
    "POST /v1/graph/match": ListCase("memory", {"text": "What of the common word?"}),
    "POST /v1/graph/traverse": ListCase("memory", {"entity": "common word", "limit": 100}),
    "GET /v1/graph/export": ListCase("memory"),
    "GET /v1/pinned": ListCase("memory", query={"limit": "100"}),
    "GET /v1/skills": ListCase("memory", query={"limit": "100"}),
    "POST /v1/skills/search": ListCase("memory", {"query": "the word", "limit": 100}),
    "GET /v1/preferences": ListCase("memory", query={"limit": "100"}),
    "POST /v1/preferences/resolve": ListCase("memory", {"flow": "words", "situation": "the word"}),
    "GET /v1/sessions": ListCase("session", query={"limit": "100"}),
    # A recall shows what was said in sessions without a user, as it shows common memories.
    "POST /v1/turns/search": ListCase("memory", {"query": "the word", "limit": 100}),
    "POST /v1/observations/search": ListCase("memory", {"query": "the word", "limit": 100}),
    "GET /v1/feedback": ListCase("session", query={"limit": "100"}),
    "GET /v1/spend": ListCase("session", query={"group_by": "session"}),
    "GET /v1/dreams": ListCase("session", query={"limit": "100"}, has_words=False),
}

# Working memory is listed for the whole tenant; its test is one of its own.
WORKING_LISTS = {"GET /v1/working", "POST /v1/working/search"}
# Users and agents are listed by their ids; their test is one of its own.
SUBJECT_LISTS = {"GET /v1/users", "GET /v1/agents"}
# Erasing has tests of its own, because nothing is left of what was erased.
ERASURES = {
    "DELETE /v1/users/{user_id}",
    "DELETE /v1/agents/{agent_id}",
    "GET /v1/erasures/{erasure_id}",
}
# Only workers make proposals: `integration/proposals/test_decisions.py` and
# `integration/skills/test_skill_proposals.py` ask for them with bound keys.
PROPOSALS = {
    "GET /v1/proposals",
    "GET /v1/proposals/{proposal_id}",
    "POST /v1/proposals/{proposal_id}",
}
# An operation of a batch is refused what a request of its own is: a test sends all of RECORDS both ways.
BATCHES = {"POST /v1/batch"}
# Tools have cases of their own, in tool_cases.py.
TOOLS = {"GET /v1/tools", "POST /v1/tools/{name}"}
# These need no key.
WITHOUT_KEY = {"GET /healthz", "GET /readyz", "GET /metrics"}


_NAMED_BY_PATH = {
    "PUT /v1/pinned/{name}": "name",
    "PUT /v1/skills/{skill}": "skill",
    "PUT /v1/preferences/{key}": "key",
}


def scope_call(route: str, case: ScopeCase, named: dict[str, str]) -> Call:
    """Return the request of a `ScopeCase` that names these of agent and user."""
    fields = case.fields()
    if route == "POST /v1/skills/import":
        return Call(201, query=named, content=zip_of_skill(fields["name"]))
    if route.endswith("/import"):
        return Call(200, query=named, content=to_lines(fields))
    body = fields | named
    if route == "PUT /v1/memories/by-key":
        return Call(200, query={"key": new_name()}, body=body)
    if route in _NAMED_BY_PATH:
        return Call(200, {_NAMED_BY_PATH[route]: new_name().lower()}, body=body)
    return Call(200, body={"memories": [body]} if route.endswith("/batch") else body)
