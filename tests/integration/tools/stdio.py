"""A client of `loci mcp`, which is started as a host does or runs within this process."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from services.commands.mcp import Choice, Forwarder, new_client, new_server


@asynccontextmanager
async def connected(url: str, key: str, era: str, data_dir: Path, *options: str) -> AsyncIterator[Client]:
    """Start `loci mcp` as a host does, and connect to it."""
    environment = {
        "PATH": os.environ["PATH"],
        "LOCI_URL": url,
        "LOCI_API_KEY": key,
        "LOCI_DATA_DIR": str(data_dir),
    }
    command = ["-m", "services.cli", "mcp", *options]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=environment)
    async with Client(stdio_client(parameters), mode=era) as client:
        yield client


@asynccontextmanager
async def connected_within(url: str, key: str, era: str, choice: Choice) -> AsyncIterator[Client]:
    """Connect to what `loci mcp` runs, without the process and its standard input and output."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LOCI_API_KEY", key)
        gateway = new_client(url, choice)
    async with gateway, Client(new_server(Forwarder(gateway, choice.tool_set)), mode=era) as client:
        yield client
