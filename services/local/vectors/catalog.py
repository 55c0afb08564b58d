"""The list of collections, their folders, and the aliases that point to them.

It is one JSON file that is replaced as a whole, so after a crash it is the old or the new one. A
collection's folder is a number that is never reused, so a name is never part of a path. A folder
that is not in the file was left by an interrupted creation or deletion, and is removed.
"""

import fcntl
import os
import re
import shutil
from pathlib import Path
from typing import Any

import orjson

from services.local.vectors import schema, shape
from services.local.vectors.collection import Collection
from shared.foundation import errors
from shared.foundation.atomic_file import write_atomically

_NAME = re.compile(r'[^<>:"/\\|?*\x00-\x1f]{1,255}')
_ACTIONS = {
    "create_alias": ("collection_name", "alias_name"),
    "delete_alias": ("alias_name",),
    "rename_alias": ("old_alias_name", "new_alias_name"),
}


class Catalog:
    """The open collections of one data directory, which is locked against other processes."""

    def __init__(self, root: Path) -> None:
        """Open all collections; raise Conflict if another process has locked the directory."""
        root.mkdir(parents=True, exist_ok=True)
        self._lock = _lock_file(root / "lock")
        self._file = root / "catalog.json"
        self._folders = root / "collections"
        self._state = _read(self._file)
        self._delete_leftovers()
        self._open = {
            name: _load(name, self._folders / entry["folder"], entry["schema"])
            for name, entry in self._state["collections"].items()
        }

    @property
    def names(self) -> list[str]:
        """The names of all collections."""
        return sorted(self._open)

    @property
    def collections(self) -> list[Collection]:
        """All collections."""
        return list(self._open.values())

    def exists(self, name: str) -> bool:
        """Tell whether a collection or an alias has this name."""
        return self._state["aliases"].get(name, name) in self._open

    def get(self, name: str) -> Collection:
        """Return the collection with this name or alias; raise NotFound."""
        collection = self._open.get(self._state["aliases"].get(name, name))
        if collection is None:
            raise _no_collection(name)
        return collection

    def create(self, name: str, body: Any) -> bool:
        """Create a collection; raise Conflict if the name is in use."""
        if not _NAME.fullmatch(name):
            raise errors.Invalid("name", 'must have 1 to 255 characters, none of <>:"/\\|?*')
        if name in self._open:
            raise errors.Conflict(f"Wrong input: Collection `{name}` already exists!")
        if name in self._state["aliases"]:
            raise errors.Invalid("name", "an alias with the same name already exists")
        definition = schema.read(body)
        number = self._state["next"]
        folder = f"{number:06}"
        collection = Collection.create(self._folders / folder, definition)
        entry = {"folder": folder, "schema": definition}
        self._save(collections=self._state["collections"] | {name: entry}, next=number + 1)
        self._open[name] = collection
        return True

    def delete(self, name: str) -> bool:
        """Delete a collection and its aliases; return False if there is no collection of this name."""
        if name not in self._open:
            return False
        collections = dict(self._state["collections"])
        folder = collections.pop(name)["folder"]
        self._save(collections=collections, aliases=_without(self._state["aliases"], name))
        self._open.pop(name).close()
        shutil.rmtree(self._folders / folder)
        return True

    def aliases(self, name: str | None = None) -> dict[str, Any]:
        """Return all aliases, or those of one collection."""
        return {
            "aliases": [
                {"alias_name": alias, "collection_name": target}
                for alias, target in sorted(self._state["aliases"].items())
                if name in (None, target)
            ]
        }

    def change_aliases(self, body: Any) -> bool:
        """Apply all actions, or none if one is refused. Raises NotFound, Conflict or Invalid."""
        actions = shape.mapping(body, "body", ("actions",), required=("actions",))["actions"]
        aliases = dict(self._state["aliases"])
        for i, action in enumerate(shape.items(actions, "actions")):
            self._apply_action(aliases, action, f"actions[{i}]")
        self._save(aliases=aliases)
        return True

    def close(self) -> None:
        """Save and close every collection."""
        for collection in self.collections:
            collection.close()
        self._lock.close()

    def _apply_action(self, aliases: dict[str, str], value: Any, at: str) -> None:
        action = shape.mapping(value, at, _ACTIONS)
        if len(action) != 1:
            shape.refuse(at, f"must carry exactly one of {', '.join(_ACTIONS)}")
        (kind, fields), *_ = action.items()
        keys = _ACTIONS[kind]
        arguments = shape.mapping(fields, f"{at}.{kind}", keys, required=keys)
        names = [shape.text(arguments[key], f"{at}.{key}") for key in keys]
        if kind == "delete_alias":
            aliases.pop(names[0], None)
        elif kind == "create_alias":
            self._set_alias(aliases, alias=names[1], target=names[0])
        else:
            self._set_alias(aliases, alias=names[1], target=_remove_alias(aliases, names[0]))

    def _set_alias(self, aliases: dict[str, str], alias: str, target: str) -> None:
        if target not in self._open:
            raise _no_collection(target)
        if alias in self._open:
            raise errors.Conflict(f"Wrong input: Collection `{alias}` already exists!")
        aliases[alias] = target

    def _save(self, **changes: Any) -> None:
        state = self._state | changes
        _replace(self._file, orjson.dumps(state))
        self._state = state

    def _delete_leftovers(self) -> None:
        self._folders.mkdir(exist_ok=True)
        folder_names = {entry["folder"] for entry in self._state["collections"].values()}
        for folder in self._folders.iterdir():
            if folder.name not in folder_names:
                shutil.rmtree(folder)


def _lock_file(path: Path) -> Any:
    lock = path.open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise errors.Conflict(f"another process holds {path.parent}") from None
    return lock


def _read(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {"collections": {}, "aliases": {}, "next": 1}
    return dict(orjson.loads(file.read_bytes()))


def _load(name: str, folder: Path, definition: dict[str, Any]) -> Collection:
    try:
        return Collection.load(folder, definition)
    except Exception as error:
        advice = f"delete {folder.parent.parent} and run `loci reindex`"
        raise errors.Unavailable(f"collection {name}", f"{error}; {advice}") from error


def _replace(file: Path, content: bytes) -> None:
    write_atomically(file, content, durable=True)
    # The rename itself is durable only once the folder is synced.
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _without(aliases: dict[str, str], target: str) -> dict[str, str]:
    return {alias: name for alias, name in aliases.items() if name != target}


def _remove_alias(aliases: dict[str, str], alias: str) -> str:
    if alias not in aliases:
        raise errors.NotFound(f"Not found: Alias {alias} does not exists!")
    return aliases.pop(alias)


def _no_collection(name: str) -> errors.NotFound:
    return errors.NotFound(f"Not found: Collection `{name}` doesn't exist!")
