"""How requests name one record: those of a foreign tenant, and those of bound keys, for which it is made."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.isolation.calls import FORM, Call, form
from tests.isolation.ids import Ids
from tests.isolation.rights_table import Owner
from tests.isolation.rights_world import World, new_name

WORKING_AREAS = (
    "working memory of a session",
    "working memory of a patrol",
    "working memory that nobody opened",
)
# What a request names; the route that it is sent to gives the status, the body and the rest.
_ANY = 0


class Record(NamedTuple):
    """A kind of record: its row of the table, and the requests that name it.

    The parameters of all routes to a record are given at once; each route takes those that its path has.
    """

    area: str
    foreign: Callable[[Ids], list[Call]]
    """Names records of a tenant by the ids that another may guess."""
    make: Callable[[World, Owner], Awaitable[Call]]
    """Makes a record of an owner and names it."""


def scope_of(ids: Ids) -> dict[str, str]:
    """Return the fields of a request that name the agent and the user."""
    return {"agent_id": ids.agent, "user_id": ids.user}


def _foreign_memory(ids: Ids) -> list[Call]:
    return [Call(_ANY, {"memory_id": memory_id}) for memory_id in (ids.memory, ids.archived)]


async def _memory(world: World, owner: Owner) -> Call:
    return Call(_ANY, {"memory_id": await world.memory(owner)})


def _foreign_key(ids: Ids) -> list[Call]:
    return [Call(_ANY, query={"namespace": ids.namespace, "key": ids.session, **scope_of(ids)})]


async def _key(world: World, owner: Owner) -> Call:
    return Call(_ANY, query={"key": await world.key(owner), **owner.scope()})


def _foreign_session(ids: Ids) -> list[Call]:
    """Name a `basic_session` and a `tmp` session, and what both of them have."""
    part = {"key": ids.patrol, "label": ids.patrol, "name": f"collections/{ids.patrol}.json", "seq": "1"}
    return [
        Call(_ANY, {"session_id": session_id, **part})
        for session_id in (ids.session, f"patrol-{ids.session}")
    ]


async def _session(world: World, owner: Owner) -> Call:
    part = {"key": "k", "label": "c", "name": "kv.json", "seq": "1"}
    return Call(_ANY, {"session_id": await world.session(owner), **part})


async def _mined_session(world: World, owner: Owner) -> Call:
    """Name a session whose scope has a run, which is joined: another would be in the way of other cases."""
    await world.run(owner)
    return await _session(world, owner)


async def _session_in_body(world: World, owner: Owner) -> Call:
    return Call(_ANY, body={"session_id": await world.session(owner)})


async def _run(world: World, owner: Owner) -> Call:
    return Call(_ANY, {"run_id": await world.run(owner)})


async def _playbook(world: World, owner: Owner) -> Call:
    return Call(_ANY, {"playbook_id": await world.playbook(owner)})


async def _entity(world: World, owner: Owner) -> Call:
    return Call(_ANY, {"entity_id": await world.entity(owner)})


async def _triple(world: World, owner: Owner) -> Call:
    return Call(_ANY, {"triple_id": await world.triple(owner)})


async def _triple_that_is_over(world: World, owner: Owner) -> Call:
    return Call(_ANY, {"triple_id": await world.triple(owner, is_over=True)})


async def _pinned_text(world: World, owner: Owner) -> Call:
    return Call(_ANY, {"name": await world.pinned_text(owner)}, owner.scope())


async def _preference(world: World, owner: Owner) -> Call:
    return Call(_ANY, {"key": await world.preference(owner)}, owner.scope())


async def _skill(world: World, owner: Owner) -> Call:
    return Call(_ANY, {"skill": await world.skill(owner), "path": "note.txt"}, owner.scope())


def _foreign_agent(ids: Ids) -> list[Call]:
    path = {"agent_id": ids.agent, "key": ids.patrol, "name": ids.patrol, "text_id": ids.text}
    return [Call(_ANY, path)]


async def _agent(world: World, owner: Owner) -> Call:
    return Call(_ANY, await world.agent(owner))


def _foreign_store(ids: Ids) -> list[Call]:
    path = {"name": ids.patrol, "key": ids.patrol, "label": ids.patrol}
    return [Call(_ANY, path, query) for query in (scope_of(ids), {"agent_id": ids.agent}, {})]


async def _store(world: World, owner: Owner) -> Call:
    return Call(_ANY, {"name": await world.store(owner), "key": "k", "label": "c"}, owner.scope())


def _foreign_entry(ids: Ids) -> list[Call]:
    keys = (ids.working_key, f"patrol/{ids.patrol}/findings", f"subagent/{ids.patrol}/report")
    full_keys = [Call(_ANY, {"key": key}) for key in keys]
    return [*full_keys, Call(_ANY, {"key": "letters"}, {"namespace": ids.namespace})]


def _entry(area: str) -> Record:
    async def make(world: World, owner: Owner) -> Call:
        return Call(_ANY, {"key": await world.working_key(area, owner)})

    return Record(area, _foreign_entry, make)


def each_prefix(ids: Ids) -> list[Call]:
    """Name the namespaces of working memory, and what is above them."""
    prefixes = (ids.namespace, ids.working_key, "session", "patrol", "subagent")
    return [Call(200, query={"prefix": prefix}) for prefix in prefixes]


def _namespace(area: str) -> Record:
    async def make(world: World, owner: Owner) -> Call:
        key = await world.working_key(area, owner)
        return Call(_ANY, query={"prefix": key.removesuffix("/note")})

    return Record(area, each_prefix, make)


async def _tenant(world: World, owner: Owner) -> Call:
    del world, owner
    return Call(_ANY)


async def _business_context(world: World, owner: Owner) -> Call:
    del owner
    version = (await world.client.get("/v1/business-context")).headers["etag"]
    return Call(_ANY, headers={"if-match": version})


def _foreign_upload(_: Ids) -> list[Call]:
    return [Call(_ANY, content=form(title="mine", source="mine", file="This text is mine."), headers=FORM)]


async def _upload(world: World, owner: Owner) -> Call:
    del world, owner
    return Call(_ANY, content=form(file=new_name()), headers=FORM)


async def _document(world: World, owner: Owner) -> Call:
    del owner
    return Call(_ANY, {"document_id": await world.document()})


def _foreign_budget(ids: Ids) -> list[Call]:
    return [Call(_ANY, {"scope": scope}) for scope in (f"agent/{ids.agent}", "tenant")]


async def _budget(world: World, owner: Owner) -> Call:
    scope = f"agent/{owner.agent_id}"
    await world.succeed("PUT", f"/v1/budgets/{scope}", json={"period": "day", "limit_tokens": 10**9})
    return Call(_ANY, {"scope": scope})


MEMORY = Record("memory", _foreign_memory, _memory)
# A memory under a key. The request names the owner, so another's is refused.
KEY = Record("key", _foreign_key, _key)
SESSION = Record("session", _foreign_session, _session)
MINED_SESSION = Record("session", _foreign_session, _mined_session)
SESSION_IN_BODY = Record(
    "session", lambda ids: [Call(_ANY, body={"session_id": ids.session})], _session_in_body
)
RUN = Record("session", lambda ids: [Call(_ANY, {"run_id": ids.run})], _run)
PLAYBOOK = Record("playbook", lambda ids: [Call(_ANY, {"playbook_id": ids.playbook})], _playbook)
ENTITY = Record("entity", lambda ids: [Call(_ANY, {"entity_id": ids.entity})], _entity)
TRIPLE = Record("triple", lambda ids: [Call(_ANY, {"triple_id": ids.triple})], _triple)
TRIPLE_THAT_IS_OVER = TRIPLE._replace(make=_triple_that_is_over)
AGENT = Record("agent", _foreign_agent, _agent)
# A scratch store that only its owner may name, because the request names the owner.
STORE = Record("store", _foreign_store, _store)
# Written as one scope: the name would be taken for the others.
WRITTEN_STORE = STORE._replace(foreign=lambda ids: _foreign_store(ids)[:1])
# The request names the owner of a pinned text, and a user's key reads the agent's text too.
PINNED_TEXT = Record(
    "pinned text", lambda ids: [Call(_ANY, {"name": ids.patrol}, scope_of(ids))], _pinned_text
)
PREFERENCE = Record("preference", lambda ids: [Call(_ANY, {"key": ids.patrol}, scope_of(ids))], _preference)
SKILL = Record(
    "skill", lambda ids: [Call(_ANY, {"skill": ids.patrol, "path": "note.txt"}, scope_of(ids))], _skill
)
ENTRIES = tuple(_entry(area) for area in WORKING_AREAS)
NAMESPACES = tuple(_namespace(area) for area in WORKING_AREAS)
TENANT = Record("tenant", lambda _: [Call(_ANY)], _tenant)
BUSINESS_CONTEXT = Record("tenant", lambda _: [Call(_ANY, headers={"if-match": "*"})], _business_context)
UPLOAD = Record("tenant", _foreign_upload, _upload)
DOCUMENT = Record("tenant", lambda ids: [Call(_ANY, {"document_id": ids.document})], _document)
BUDGET = Record("budget", _foreign_budget, _budget)
# Only a key without bindings sets budgets, whosever they are.
SET_BUDGET = BUDGET._replace(area="tenant")
