"""The command `loci mcp`. It imports what it needs when it runs, so that `loci --help` is fast."""

from typing import Annotated

import typer

from services.commands import run_as_command

mcp = typer.Typer(rich_markup_mode=None, add_completion=False)


@mcp.callback(invoke_without_command=True)
@run_as_command
def serve_mcp(
    agent: Annotated[str | None, typer.Option("--agent", help="The agent to act for.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="The user to act for.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="The session to work in.")] = None,
    tool_set: Annotated[str, typer.Option("--set", help="The set of tools.")] = "default",
    url: Annotated[str | None, typer.Option("--url", help="The gateway. Default: LOCI_URL.")] = None,
) -> None:
    """Serve the tools over MCP on standard input and output, by a gateway that runs.

    The key is LOCI_API_KEY, or the development key. The options choose within its rights.
    """
    from services.commands.mcp import Choice, serve

    serve(url, Choice(agent, user, session, tool_set))
