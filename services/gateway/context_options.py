"""What a request for a context, or an agent's profile, chooses: the fields that both bodies have."""

from typing import Annotated

from pydantic import Field

from services.gateway.api_model import ApiModel, Count, example
from shared.context.request import ContextOptions
from shared.context.types import BlockKind
from shared.foundation.scope import Caller


class ContextOptionsBody(ApiModel):
    """What contexts recall and show.

    What a request leaves out is as the agent's profile says, and what that leaves out is as the settings say.
    """

    model_config = example({"limit": 5, "categories": ["user-preferences"], "blocks": ["recalled"]})

    limit: Annotated[Count, Field(ge=1, le=100, description="Recalled memories.")] | None = None
    min_similarity: Annotated[
        float | None, Field(ge=-1, le=1, description="The least similarity of what only its vector finds.")
    ] = None
    categories: Annotated[
        list[str] | None, Field(max_length=32, description="Recall only what lies in one of these.")
    ] = None
    blocks: Annotated[
        list[BlockKind] | None,
        Field(
            max_length=32,
            description="The kinds of blocks to show; `core` and `summary` always are. "
            "`past_turns` are recalled if named.",
        ),
    ] = None
    agents: Annotated[
        list[str] | None,
        Field(max_length=16, description="Agents whose common memories are searched too."),
    ] = None

    def options(self, caller: Caller) -> ContextOptions:
        """Return what is chosen. Raise errors.Invalid or errors.Forbidden as `ContextOptions.validated`."""
        return ContextOptions(
            self.limit,
            self.min_similarity,
            None if self.categories is None else tuple(self.categories),
            None if self.blocks is None else frozenset(self.blocks),
            None if self.agents is None else tuple(self.agents),
        ).validated(caller)
