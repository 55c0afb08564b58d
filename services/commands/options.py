"""Options that several commands share. They import no database client, so that `loci --help` is fast."""

from enum import StrEnum
from typing import Annotated

import typer

Agent = Annotated[str | None, typer.Option("--agent", help="The agent whose memory to use.")]
User = Annotated[
    str | None,
    typer.Option("--user", help="The user whose memory to use."),
]
Tenant = Annotated[str, typer.Option("--tenant", help="The tenant.")]


class DemoModel(StrEnum):
    """A language model that the demo can ask."""

    LOCAL = "local"
