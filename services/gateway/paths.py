"""Path converters for session and agent ids, which may contain `/` and stand before more segments.

A session id ends before the first segment, after its own first one, that is a sub-resource of
sessions: `/v1/sessions/a/b/kv/c/files/d` is the key `c/files/d` of the session `a/b`. No session may
have such a segment in its id, so every path has one meaning, in whatever order routes are matched.
The same is true of agents.
"""

import re
from collections.abc import Iterable
from typing import Annotated

from fastapi import Path
from starlette.convertors import Convertor, register_url_convertor

from shared.conversation.sessions.open import RESERVED_SEGMENTS
from shared.foundation.scope import AGENT_PARTS


def _id_pattern(reserved_segments: Iterable[str]) -> str:
    reserved = "|".join(map(re.escape, sorted(reserved_segments)))
    # `(?:/|$)` ends the segment, so that `kvs` is allowed although `kv` is reserved.
    return rf"[^/]*(?:/(?!(?:{reserved})(?:/|$))[^/]*)*"


class _SessionId(Convertor[str]):
    regex = _id_pattern(RESERVED_SEGMENTS)

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class _AgentId(_SessionId):
    regex = _id_pattern(AGENT_PARTS)


register_url_convertor("session", _SessionId())
register_url_convertor("agent", _AgentId())

SessionId = Annotated[str, Path(examples=["support-42"])]
AgentPathId = Annotated[str, Path(description="The agent.", examples=["support"])]
