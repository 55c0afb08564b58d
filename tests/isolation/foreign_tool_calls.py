"""The arguments and headers with which another tenant calls each tool, with foreign and with unused ids."""

from collections.abc import Callable
from typing import Any

from tests.isolation.ids import Ids

Arguments = dict[str, Any]


def _of_memory(ids: Ids) -> list[Arguments]:
    return [{"id": ids.memory}, {"id": ids.archived}]


def _changed(ids: Ids) -> list[Arguments]:
    return [arguments | {"content": "taken over", "importance": 0.1} for arguments in _of_memory(ids)]


def _of_key(ids: Ids) -> list[Arguments]:
    return [{"key": ids.working_key}, {"key": f"patrol/{ids.patrol}/findings"}, {"key": "letters"}]


def _queries(ids: Ids) -> list[Arguments]:
    return [{"query": ids.content}, {"query": "letters gate raw enriched pending said observed"}]


def _namespaces(ids: Ids) -> list[Arguments]:
    return [{"namespace": ids.namespace}, {"namespace": "patrol"}, {}]


# Those that write for the caller itself come first: the first one needs the right `write`.
ARGUMENTS: dict[str, Callable[[Ids], list[Arguments]]] = {
    "memory_add": lambda ids: [{"content": ids.content}],
    "save_memory": lambda ids: [{"content": ids.content, "tags": "mine"}],
    "memory_update": _changed,
    "memory_forget": _of_memory,
    "delete_memory": _of_memory,
    "memory_search": _queries,
    "search_memory": lambda ids: [*_queries(ids), {}],
    "list_memory_categories": lambda _: [{}],
    "list_categories": lambda _: [{}],
    "conversation_search": _queries,
    "context_get": lambda _: [{"message": "the gate"}],
    "working_get": _of_key,
    "working_set": lambda ids: [
        {"key": "letters", "value": "mine"},
        {"key": ids.working_key, "value": "mine"},
    ],
    "get_from_working_memory": _of_key,
    "save_to_working_memory": lambda ids: [{"key": ids.working_key, "data": "mine"}],
    "delete_from_working_memory": _of_key,
    "list_working_memory": _namespaces,
    "search_working_memory": lambda ids: [{**where, "query": "letters"} for where in _namespaces(ids)],
    "search_business_context": _queries,
    "preference_resolve": lambda ids: [{"flow": ids.patrol, "situation": "the gate"}],
    "preference_set": lambda ids: [{"key": ids.patrol, "flow": "mine", "slot": "mine", "value": "mine"}],
    "preference_delete": lambda ids: [{"key": ids.patrol}],
    "skill_load": lambda ids: [{"name": ids.patrol}],
    "get_skill": lambda ids: [{"name": ids.patrol}],
    "skill_search": _queries,
    "list_skills": lambda _: [{}],
    "save_skill": lambda ids: [{"name": ids.patrol, "content": "mine"}],
    "delete_skill": lambda ids: [{"name": ids.patrol}],
    "graph_facts": lambda ids: [{"about": f"the gate {ids.patrol} {ids.user}"}],
    "scratchpad_write": lambda _: [{"content": "mine"}],
    "scratchpad_read": lambda _: [{}],
}


def headers_of(ids: Ids) -> list[dict[str, str]]:
    """Return the headers with which each call is sent: none, those of a scope, and those of a session."""
    scope = {"loci-agent": ids.agent, "loci-user": ids.user}
    return [{}, scope, {"loci-session": ids.session}, scope | {"loci-session": ids.session}]
