"""A tool: a capability under a name, with what a language model must know to call it.

A tool is a label on the functions that the routes call, and knows no rule about memory itself. No tool takes
an agent, a user or a tenant as an argument: the key of the request decides on whose behalf it acts.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from services.gateway.api_model import ApiModel
from services.gateway.tools.invocation import Invocation
from shared.platform.auth.rights import Action, Area

DEFAULT_SET = "default"
"""The set that is listed unless another is asked for: six tools."""


Texts = Annotated[list[str], Field(fail_fast=True)]
"""Texts of a model. Of a million that are none the first is named: to collect all would take seconds."""


class ToolArguments(ApiModel):
    """The arguments of a tool. A model may write a number as text, so they are not strict."""

    model_config: ClassVar[ConfigDict] = ApiModel.model_config | ConfigDict(use_attribute_docstrings=True)


class Needs(StrEnum):
    """What a request must have besides the key for a tool to be listed."""

    NOTHING = "nothing"
    SESSION = "a session"
    NAMESPACE = "a session, or a key that is bound to a namespace"


@dataclass(frozen=True, slots=True)
class Effect:
    """What a call does, as the hints of MCP have it: read, delete or replace, and the same if repeated."""

    reads_only: bool = False
    is_destructive: bool = False
    is_idempotent: bool = False

    def hints(self) -> dict[str, bool]:
        """Return the annotations of MCP. Of a tool that only reads, the others would say nothing."""
        if self.reads_only:
            return {"readOnlyHint": True, "openWorldHint": False}
        return {
            "readOnlyHint": False,
            "destructiveHint": self.is_destructive,
            "idempotentHint": self.is_idempotent,
            "openWorldHint": False,
        }


READS = Effect(reads_only=True)
ADDS = Effect()
REPLACES = Effect(is_destructive=True, is_idempotent=True)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool.

    `run` takes the call and the parsed arguments, and returns what the model reads. The key must have the
    right `action`, and its bindings must allow that on some record of the `area`. `if_missing` says what to
    do next when a call names something that is not there. A tool that is not `in_all` is left out of the set
    `all`, whose tokens are limited.
    """

    name: str
    description: str
    arguments: type[ToolArguments]
    run: Callable[[Invocation, Any], Awaitable[str]]
    area: Area
    action: Action
    sets: frozenset[str]
    effect: Effect = READS
    needs: Needs = Needs.NOTHING
    if_missing: str = ""
    in_all: bool = True
