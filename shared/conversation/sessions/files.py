"""Files of a session. No file is stored: each is rendered from the session's state when it is requested."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from shared.conversation.sessions import usage
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.sessions.state import state_store_of
from shared.conversation.state import markdown
from shared.conversation.state.protocol import StateStore
from shared.conversation.state.types import CollectionSnapshot, to_json_time, version_to_time
from shared.conversation.values import collection_codec, json_codec
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.platform.resources import Resources

_COLLECTIONS = "collections/"


@dataclass(frozen=True, slots=True)
class File:
    """A rendered file. `modified` is when the state that the file shows was last written."""

    name: str
    media_type: str
    content: bytes
    modified: datetime

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the file in a list of files as JSON."""
        size = len(self.content)
        return {"name": self.name, "size_bytes": size, "modified": to_json_time(self.modified)}


async def list_files(resources: Resources, caller: Caller, session_id: str) -> list[dict[str, Any]]:
    """Return the files of a session as JSON, ordered by name. Every file is rendered to learn its size."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id)
        store = state_store_of(resources, tx, session)
        files = [(await render(session, store)).to_json() for render in _FIXED_FILES.values()]
        for info in await store.list_collections():
            snapshot = await store.get_collection(info.label)
            files += [] if snapshot is None else [_render_collection(snapshot).to_json()]
    return sorted(files, key=lambda file: str(file["name"]))


async def read_file(resources: Resources, caller: Caller, session_id: str, name: str) -> File:
    """Render one file; raise errors.NotFound if the session has no file of this name."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id)
        store = state_store_of(resources, tx, session)
        if name in _FIXED_FILES:
            return await _FIXED_FILES[name](session, store)
        label = name.removeprefix(_COLLECTIONS).removesuffix(".json")
        if name != _collection_file_name(label):
            raise errors.NotFound(f"file not found: {name}")
        snapshot = await store.get_collection(label)
    if snapshot is None:
        raise errors.NotFound(f"file not found: {name}")
    return _render_collection(snapshot)


def _collection_file_name(label: str) -> str:
    return f"{_COLLECTIONS}{label}.json"


async def _render_keys(session: Session, store: StateStore) -> File:
    entries = await store.list_keys(store.caps.keys)
    values = {entry.key: json_codec.encode(entry.value) for entry in entries}
    payload = {"cap": store.caps.keys, "order": list(values), "values": values}
    modified = version_to_time(entries[-1].version) if entries else session.created_at
    return _json_file("kv.json", payload, modified)


async def _render_transcript(session: Session, store: StateStore) -> File:
    entries = await store.transcript(store.caps.entries)
    modified = entries[-1].timestamp if entries else session.created_at
    return File("transcript.md", "text/markdown", markdown.render(entries).encode(), modified)


async def _render_spend(session: Session, store: StateStore) -> File:
    del store  # the totals are in the session's row
    modified = session.spend["last_updated"] if session.spend else session.created_at
    return File("spend.json", "application/json", usage.totals_file(session.spend), modified)


# Every session has these files, even if they are empty.
_FIXED_FILES: dict[str, Callable[[Session, StateStore], Awaitable[File]]] = {
    "kv.json": _render_keys,
    "spend.json": _render_spend,
    "transcript.md": _render_transcript,
}


def _render_collection(snapshot: CollectionSnapshot) -> File:
    info = snapshot.info
    value = collection_codec.encode_collection(snapshot.collection)
    payload = {"type": info.type, "index": info.index, "value": value}
    return _json_file(_collection_file_name(info.label), payload, version_to_time(info.version))


def _json_file(name: str, payload: Any, modified: datetime) -> File:
    return File(name, "application/json", orjson.dumps(payload, option=orjson.OPT_INDENT_2), modified)
