"""Read the export of a Slack workspace: a block is a message, with its channel, time and author."""

import html
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any
from zipfile import ZipFile

from shared.memory.documents.parsed import Block, Unreadable
from workers.documents.parsing.archives import open_archive
from workers.documents.parsing.text import numbered

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.json")
_MENTION = re.compile(r"<([@#!])([^<>|]*)(?:\|([^<>]*))?>")
_LINK = re.compile(r"<(https?:[^<>|]*|mailto:[^<>|]*)(?:\|([^<>]*))?>")
# Messages that Slack writes itself: who joined, left or was renamed.
_OF_SLACK = re.compile(
    r"(?:channel|group)_(?:join|leave|topic|purpose|name|archive|unarchive)|bot_(?:add|remove)"
)


def read_slack(content: bytes) -> tuple[str | None, tuple[Block, ...]]:
    """Return the blocks by channel and time; each message begins a line of the document's text."""
    with open_archive(content) as archive:
        names_by_id = _user_names(_load(archive, "users.json"))
        texts = [text for day in _days(archive) for text in _messages(archive, day, names_by_id)]
    return None, numbered(texts)


def _load(archive: ZipFile, name: str) -> list[dict[str, Any]]:
    try:
        items = json.loads(archive.read(name))
    except (ValueError, RecursionError) as error:
        raise Unreadable("damaged", f"{PurePosixPath(name).name} of the Slack export is no JSON.") from error
    if not isinstance(items, list):
        raise Unreadable("damaged", f"{PurePosixPath(name).name} of the Slack export is no list.")
    return [item for item in items if isinstance(item, dict)]


def _user_names(users: list[dict[str, Any]]) -> dict[str, str]:
    return {str(user.get("id")): _user_name(user) for user in users}


def _user_name(user: Mapping[str, Any]) -> str:
    profile = user.get("profile")
    profile = profile if isinstance(profile, dict) else {}
    names = (profile.get("display_name"), user.get("real_name"), profile.get("real_name"), user.get("name"))
    return next((str(name) for name in names if name), str(user.get("id")))


def _days(archive: ZipFile) -> list[str]:
    """Return the members that hold the messages of one day of one channel, in their order."""
    paths = [PurePosixPath(name) for name in archive.namelist()]
    return sorted(str(path) for path in paths if len(path.parts) == 2 and _DAY.fullmatch(path.name))


def _messages(archive: ZipFile, day: str, names_by_id: Mapping[str, str]) -> Iterator[str]:
    channel = PurePosixPath(day).parent.name
    for message in sorted(_load(archive, day), key=_seconds):
        text = message.get("text")
        if not isinstance(text, str) or not text.strip() or _OF_SLACK.fullmatch(str(message.get("subtype"))):
            continue
        time = datetime.fromtimestamp(_seconds(message), UTC)
        yield f"#{channel} {time:%Y-%m-%d %H:%M} {_author(message, names_by_id)}: {_plain(text, names_by_id)}"


def _seconds(message: Mapping[str, Any]) -> float:
    try:
        return min(max(float(message.get("ts", 0)), 0.0), 253_402_300_799.0)
    except (TypeError, ValueError):
        return 0.0


def _author(message: Mapping[str, Any], names_by_id: Mapping[str, str]) -> str:
    user_id = str(message.get("user"))
    return names_by_id.get(user_id) or str(message.get("username") or message.get("user") or "unknown")


def _plain(text: str, names_by_id: Mapping[str, str]) -> str:
    """Return a message as its readers see it: with names for ids, and addresses behind what links show."""
    text = _MENTION.sub(lambda match: _mention(match, names_by_id), text)
    text = _LINK.sub(lambda match: f"{match[2]} ({match[1]})" if match[2] else match[1], text)
    return html.unescape(text)


def _mention(match: re.Match[str], names_by_id: Mapping[str, str]) -> str:
    sign, id_, label = match[1], match[2], match[3]
    return ("@" if sign == "!" else sign) + (label or names_by_id.get(id_, id_))
