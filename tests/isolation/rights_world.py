"""Records of every owner, made by an unbound key, for the requests of bound keys."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

from tests.isolation.calls import FORM, form
from tests.isolation.rights_table import Owner
from tests.skill_archives import skill_text, zip_of

PLAYBOOK: dict[str, Any] = {
    "slots": {},
    "tool_calls": [{"tool_id": "look_up"}],
    "outcome": "success",
    "user_query": "the word",
}


@dataclass
class World:
    """A tenant. `client` has an unbound key.

    Records are made once for each owner and used again, unless `fresh`: for requests that change them.
    """

    client: httpx.AsyncClient
    fresh: bool = False
    cached: dict[Any, Any] = field(default_factory=dict)

    async def _make(self, kind: str, owner: Owner, build: Callable[[], Awaitable[Any]]) -> Any:
        if self.fresh:
            return await build()
        if (kind, owner) not in self.cached:
            self.cached[kind, owner] = await build()
        return self.cached[kind, owner]

    async def succeed(self, method: str, path: str, **options: Any) -> Any:
        """Send a request of the unbound key that must succeed, and return the content."""
        response = await self.client.request(method, path, **options)
        assert response.is_success, response.text
        return response.json()

    async def memory(self, owner: Owner) -> str:
        """Save a memory and return its id."""

        async def build() -> str:
            body = {"content": f"a word: {new_name()}", **owner.scope()}
            return str((await self.succeed("POST", "/v1/memories", json=body))["id"])

        return str(await self._make("memory", owner, build))

    async def key(self, owner: Owner) -> str:
        """Save a memory under a key and return the key."""

        async def build() -> str:
            key = new_name()
            body = {"content": f"a word: {key}", **owner.scope()}
            await self.succeed("PUT", "/v1/memories/by-key", params={"key": key}, json=body)
            return key

        return str(await self._make("key", owner, build))

    async def pinned_text(self, owner: Owner) -> str:
        """Pin a text and return its name."""

        async def build() -> str:
            name = new_name()
            await self.succeed("PUT", f"/v1/pinned/{name}", json={"content": "a word", **owner.scope()})
            return name

        return str(await self._make("pinned text", owner, build))

    async def preference(self, owner: Owner) -> str:
        """Store a preference and return its key."""

        async def build() -> str:
            key = new_name()
            await self.succeed("PUT", f"/v1/preferences/{key}", json={**preference_of(key), **owner.scope()})
            return key

        return str(await self._make("preference", owner, build))

    async def skill(self, owner: Owner) -> str:
        """Import a skill with a file and return its name."""

        async def build() -> str:
            name = new_name().lower()
            archive = zip_of({"SKILL.md": skill_text(name), "note.txt": "a word"})
            await self.succeed("POST", "/v1/skills/import", params=owner.scope(), content=archive)
            return name

        return str(await self._make("skill", owner, build))

    async def playbook(self, owner: Owner) -> str:
        """Record a playbook and return its id."""

        async def build() -> str:
            body = {**PLAYBOOK, "flow_dact": new_name(), **owner.scope()}
            return str((await self.succeed("POST", "/v1/playbooks", json=body))["id"])

        return str(await self._make("playbook", owner, build))

    async def entity(self, owner: Owner) -> str:
        """Save an entity of the graph and return its id."""

        async def build() -> str:
            body = {"name": new_name(), **owner.scope()}
            return str((await self.succeed("POST", "/v1/graph/entities", json=body))["id"])

        return str(await self._make("entity", owner, build))

    async def triple(self, owner: Owner, *, is_over: bool = False) -> str:
        """Save a triple, which is invalidated if it `is_over`, and return its id."""

        async def build() -> str:
            body = {**triple_of(new_name()), **owner.scope()}
            triple_id = str((await self.succeed("POST", "/v1/graph/triples", json=body))["id"])
            if is_over:
                path = f"/v1/graph/triples/{triple_id}/invalidate"
                await self.succeed("POST", path, json={"reason": "over"})
            return triple_id

        return str(await self._make(f"triple, over: {is_over}", owner, build))

    async def document(self) -> str:
        """Upload a document and return its id. No worker takes it up."""
        content = form(file=f"a word: {new_name()}")
        return str((await self.succeed("POST", "/v1/documents", content=content, headers=FORM))["id"])

    async def session(self, owner: Owner) -> str:
        """Open a session with a turn, a key and a collection, and return its id."""
        return str(await self._make("session", owner, lambda: self._open_session(owner)))

    async def _open_session(self, owner: Owner, session_id: str | None = None) -> str:
        session_id = session_id or new_name()
        root, vectors = f"/v1/sessions/{session_id}", {"type": "vec", "value": [[1, 0]], "index": True}
        await self._succeed_all(
            ("POST", "/v1/sessions", {"id": session_id, **owner.scope()}),
            ("PUT", f"{root}/kv/k", {"value": 1}),
            ("POST", f"{root}/turns", {"role": "user", "content": "said"}),
            ("PUT", f"{root}/collections/c", vectors),
            ("POST", f"{root}/scratchpad", {"content": new_name()}),
        )
        return session_id

    async def _succeed_all(self, *requests: tuple[str, str, Any]) -> None:
        """Send requests as one batch: each must succeed."""
        operations = [{"method": method, "path": path, "body": body} for method, path, body in requests]
        answered = await self.succeed("POST", "/v1/batch", json={"operations": operations})
        assert all(result["status"] < 300 for result in answered["results"]), answered

    async def run(self, owner: Owner) -> str:
        """Start a dream run, once for each owner, and return its id. No worker takes it up."""
        if ("run", owner) not in self.cached:
            run = await self.succeed("POST", "/v1/dreams", json={**owner.scope(), "dry_run": True})
            self.cached["run", owner] = run["id"]
        return str(self.cached["run", owner])

    async def working_key(self, area: str, owner: Owner, word: str = "x") -> str:
        """Write an entry of working memory into a namespace of the owner, and return its key."""
        return str(await self._make(f"{area}: {word}", owner, lambda: self._write_entry(area, owner, word)))

    async def _write_entry(self, area: str, owner: Owner, word: str) -> str:
        namespace = f"subagent/{new_name()}"
        if area == "working memory of a session":
            namespace = f"session/{await self._open_session(owner)}"
        if area == "working memory of a patrol":
            namespace = f"patrol/{new_name()}"
            body = {"kind": "patrol", "name": namespace.removeprefix("patrol/"), **owner.scope()}
            await self.succeed("POST", "/v1/sessions", json=body)
        entry = {"value": word, "ttl_seconds": 3600}
        await self.succeed("PUT", f"/v1/working/{namespace}/note", json=entry)
        return f"{namespace}/note"

    async def agent(self, owner: Owner) -> dict[str, str]:
        """Give an agent a profile with a key, a file and a text; return the path parameters of these."""
        root = f"/v1/agents/{owner.agent_id}"
        await self.succeed("PUT", root, json={"store_types": ["tmp"]})
        await self.succeed("PUT", f"{root}/kv/k", json={"value": 1})
        await self.succeed("PUT", f"{root}/files/f", content=b"f")
        text = await self.succeed("POST", f"{root}/texts", json={"content": "t"})
        return {"agent_id": owner.agent_id, "key": "k", "name": "f", "text_id": text["id"]}

    async def store(self, owner: Owner) -> str:
        """Write a key and a collection into a scratch store of an owner, and return its name."""

        async def build() -> str:
            name, query = new_name(), owner.scope()
            await self.succeed("PUT", f"/v1/stores/{name}/kv/k", params=query, json={"value": 1})
            vectors = {"type": "vec", "value": [[1, 0]], "index": True}
            await self.succeed("PUT", f"/v1/stores/{name}/collections/c", params=query, json=vectors)
            return name

        return str(await self._make("store", owner, build))

    async def words(self, owner: Owner) -> str:
        """Give an owner one record of each kind that lists and searches show, once; return their word."""
        if ("word", owner) not in self.cached:
            word = self.cached["word", owner] = new_name()
            memory = {"content": f"the word {word}", "tags": [word], "category": f"words/{word}"}
            await self.succeed("POST", "/v1/memories", json=memory | owner.scope())
            keyed = {"content": "a word", "namespace": f"words/{word}", "key": "k", **owner.scope()}
            await self.succeed("POST", "/v1/memories", json=keyed)
            pinned = {"content": f"the word {word}", **owner.scope()}
            await self.succeed("PUT", f"/v1/pinned/{word}", json=pinned)
            preference = {**preference_of(word), **owner.scope()}
            await self.succeed("PUT", f"/v1/preferences/{word}", json=preference)
            skill = {"content": word, "summary": f"the word {word}", **owner.scope()}
            await self.succeed("PUT", f"/v1/skills/{word.lower()}", json=skill)
            playbook = {**PLAYBOOK, "flow_dact": word, **owner.scope()}
            await self.succeed("POST", "/v1/playbooks", json=playbook)
            entity = {"name": word, "aliases": ["common word"], **owner.scope()}
            await self.succeed("POST", "/v1/graph/entities", json=entity)
            await self.succeed("POST", "/v1/graph/triples", json={**triple_of(word), **owner.scope()})
            session_id = f"of-{word}"
            await self._open_session(owner, session_id)
            root = f"/v1/sessions/{session_id}"
            await self.succeed("POST", f"{root}/turns", json={"role": "user", "content": f"the word {word}"})
            await self.succeed(
                "POST", f"{root}/observations", json={"kind": "fact", "content": f"the word {word}"}
            )
            await self.succeed(
                "POST", f"{root}/feedback", json={"type": "UserThumbsUp", "summary": f"the word {word}"}
            )
            usage = {"usage_id": word, "model": f"m-{word}", "usage": {"total_tokens": 7}}
            await self.succeed("POST", f"{root}/spend", json=usage)
        return str(self.cached["word", owner])


def new_name() -> str:
    """Return a name that nothing has yet, with letters of both cases."""
    return f"Name-{uuid4().hex[:10]}x"


def preference_of(word: str) -> dict[str, Any]:
    """Return a rule that says a word, in a flow and a situation that all of them share."""
    return {
        "condition": {"flow": "words", "description": "the word"},
        "effect": {"slot": word, "value": word},
    }


def triple_of(word: str) -> dict[str, Any]:
    """Return a triple that says a word."""
    return {"subject": word, "predicate": "is", "literal": word}


def entity_line() -> dict[str, Any]:
    """Return the line of an entity that nothing has yet."""
    line = {"kind": "graph_entity", "id": str(uuid4()), "name": new_name(), "type": "Topic"}
    return line | {"created_at": "2026-01-01T00:00:00Z"}


def to_lines(memory: dict[str, Any]) -> bytes:
    """Return a memory as a line of an import."""
    return json.dumps(memory).encode()
