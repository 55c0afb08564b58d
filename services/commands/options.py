"""Options that several commands share."""

from typing import Annotated

import typer

Agent = Annotated[str | None, typer.Option("--agent", help="The agent whose memory is meant.")]
User = Annotated[str | None, typer.Option("--user", help="The user whose memory is meant.")]
Tenant = Annotated[str, typer.Option("--tenant", help="The tenant.")]
