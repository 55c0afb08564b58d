"""Paths in which an id has `/` inside and more follows.

The id of a session ends before the first segment, after its own first, that names something which
sessions hold: `/v1/sessions/a/b/kv/c/files/d` is the key `c/files/d` of the session `a/b`. No session
may have such an id, so every path reads in one way, in whatever order routes are asked. The same
holds for agents.
"""

import re
from collections.abc import Iterable
from typing import Annotated

from fastapi import Path
from starlette.convertors import Convertor, register_url_convertor

from shared.conversation.sessions.open import RESERVED_SEGMENTS


def _id_before(held_names: Iterable[str]) -> str:
    held = "|".join(map(re.escape, sorted(held_names)))
    # `\Z` would not do: the end of the id is where the rest of the route begins.
    return rf"[^/]*(?:/(?!(?:{held})(?:/|$))[^/]*)*"


class _SessionId(Convertor[str]):
    regex = _id_before(RESERVED_SEGMENTS)

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class _AgentId(_SessionId):
    regex = _id_before({"kv", "texts", "files"})


register_url_convertor("session", _SessionId())
register_url_convertor("agent", _AgentId())

SessionId = Annotated[str, Path(examples=["support-42"])]
AgentPathId = Annotated[str, Path(description="The agent.", examples=["support"])]
