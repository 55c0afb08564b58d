"""A client of `loci mcp`, started as a host does."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


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
