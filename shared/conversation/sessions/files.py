"""Files of a session. None is kept: each is made of the session's state when it is asked for."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from shared.conversation.sessions import totals
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.sessions.state import store_of
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
    """A file that was made just now. `modified` is when what it shows was last written."""

    name: str
    media_type: str
    content: bytes
    modified: datetime

    def to_json(self) -> dict[str, Any]:
        """Return what is listed of it, as JSON."""
        size = len(self.content)
        return {"name": self.name, "size_bytes": size, "modified": to_json_time(self.modified)}


async def list_files(resources: Resources, caller: Caller, session_id: str) -> list[dict[str, Any]]:
    """Return what files a session has as JSON, by name. They are made one after the other, for their size."""
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        session = await get_session(connection, caller, session_id, resources.settings.window_ttl)
        store = store_of(resources, connection, session)
        listed = [(await make(session, store)).to_json() for make in _FIXED.values()]
        for listing in await store.list_collections():
            snapshot = await store.get_collection(listing.label)
            listed += [] if snapshot is None else [_collection(snapshot).to_json()]
    return sorted(listed, key=lambda file: str(file["name"]))


async def read_file(resources: Resources, caller: Caller, session_id: str, name: str) -> File:
    """Return one file; raise errors.NotFound for a name that a session has no file of."""
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        session = await get_session(connection, caller, session_id, resources.settings.window_ttl)
        store = store_of(resources, connection, session)
        if name in _FIXED:
            return await _FIXED[name](session, store)
        label = name.removeprefix(_COLLECTIONS).removesuffix(".json")
        if name != _file_of(label):
            raise errors.NotFound(f"file not found: {name}")
        snapshot = await store.get_collection(label)
    if snapshot is None:
        raise errors.NotFound(f"file not found: {name}")
    return _collection(snapshot)


def _file_of(label: str) -> str:
    return f"{_COLLECTIONS}{label}.json"


async def _kv(session: Session, store: StateStore) -> File:
    entries = await store.list_keys(store.caps.keys)
    values = {entry.key: json_codec.encode(entry.value) for entry in entries}
    told = {"cap": store.caps.keys, "order": list(values), "values": values}
    modified = version_to_time(entries[-1].version) if entries else session.created_at
    return _json("kv.json", told, modified)


async def _transcript(session: Session, store: StateStore) -> File:
    entries = await store.transcript(store.caps.entries)
    modified = entries[-1].timestamp if entries else session.created_at
    return File("transcript.md", "text/markdown", markdown.render(entries).encode(), modified)


async def _spend(session: Session, store: StateStore) -> File:
    del store  # the totals stand on the session itself
    modified = session.spend["last_updated"] if session.spend else session.created_at
    return File("spend.json", "application/json", totals.rendered(session.spend), modified)


# Every session has these, if only empty.
_FIXED: dict[str, Callable[[Session, StateStore], Awaitable[File]]] = {
    "kv.json": _kv,
    "spend.json": _spend,
    "transcript.md": _transcript,
}


def _collection(snapshot: CollectionSnapshot) -> File:
    listing = snapshot.listing
    value = collection_codec.encode_collection(snapshot.collection)
    told = {"type": listing.type, "index": listing.index, "value": value}
    return _json(_file_of(listing.label), told, version_to_time(listing.version))


def _json(name: str, told: Any, modified: datetime) -> File:
    return File(name, "application/json", orjson.dumps(told, option=orjson.OPT_INDENT_2), modified)
