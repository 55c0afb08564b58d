"""A request for a context, and what it may choose: how much is recalled, from where, and what is shown."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shared.context.types import BlockKind
from shared.foundation import validation
from shared.foundation.optional_fields import without_none
from shared.foundation.scope import Caller, check_id
from shared.memory.longterm.filters import MemoryFilters
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """What a request, or an agent's profile, chooses for contexts. None means that it does not choose.

    `limit` is the number of recalled memories. Those are recalled that lie in one of the `categories`, or
    below it, of the session's scope and of the common memories of `agents`. `blocks` are the kinds that are
    shown; `core` and `summary` always are.
    """

    limit: int | None = None
    min_similarity: float | None = None
    categories: tuple[str, ...] | None = None
    blocks: frozenset[BlockKind] | None = None
    agents: tuple[str, ...] | None = None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "ContextOptions":
        """Return options that were stored with an agent's profile."""
        lists = {name: tuple(stored[name]) for name in ("categories", "agents") if name in stored}
        kinds = {"blocks": frozenset(map(BlockKind, stored["blocks"]))} if "blocks" in stored else {}
        return cls(**{**stored, **lists, **kinds})

    def to_json(self) -> dict[str, Any]:
        """Return the options that are chosen, for an agent's profile."""
        chosen = without_none(**asdict(self))
        return {name: sorted(value) if name == "blocks" else value for name, value in chosen.items()}

    def validated(self, caller: Caller) -> "ContextOptions":
        """Return the options; raise errors.Invalid for a bad category or id of an agent.

        Raise errors.Forbidden for an agent whose memories the key may not read.
        """
        for position, category in enumerate(self.categories or ()):
            validation.check_category(category, f"categories.{position}")
        for position, agent_id in enumerate(self.agents or ()):
            check_id(f"agents.{position}", agent_id)
            rights.scope(caller, Area.MEMORIES, Action.READ, agent_id)
        return self

    def or_else(self, caller: Caller, defaults: "ContextOptions") -> "ContextOptions":
        """Return these options, completed by an agent's own.

        Of those, agents count only whose memories the key may read: somebody else has chosen them.
        """
        readable = [agent for agent in defaults.agents or () if _may_read(caller, agent)]
        completed = {**asdict(defaults), "agents": tuple(readable)} | without_none(**asdict(self))
        return ContextOptions(**completed)

    def shows(self, kind: BlockKind) -> bool:
        """Return whether blocks of this kind are shown."""
        return self.blocks is None or kind in self.blocks

    def names(self, kind: BlockKind) -> bool:
        """Return whether blocks of this kind are asked for by name."""
        return self.blocks is not None and kind in self.blocks

    @property
    def filters(self) -> MemoryFilters:
        """The filters of the recall."""
        return MemoryFilters(categories=self.categories or (), sharing_agents=self.agents or ())


def _may_read(caller: Caller, agent_id: str) -> bool:
    return rights.allows(caller, Area.MEMORIES, Action.READ, Owner(agent_id))


@dataclass(frozen=True, slots=True)
class Request:
    """A user's message, and options for its context. `max_tokens` of None means no limit."""

    message: str
    system: str | None = None
    record_turn: bool = True
    max_tokens: int | None = None
    explain: bool = False
    options: ContextOptions = ContextOptions()
