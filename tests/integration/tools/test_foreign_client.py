"""A client of another make: the TypeScript SDK of MCP.

It runs where `TEST_NODE_MODULES` names the absolute path of a folder `node_modules` with it, as
`npm install @modelcontextprotocol/sdk` makes one.
"""

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from shared.platform.auth import api_keys
from tests.conftest import Gateway

SCRIPT = Path(__file__).parent / "foreign_client.mjs"
MODULES = os.environ.get("TEST_NODE_MODULES")


@pytest.mark.skipif(not MODULES, reason="TEST_NODE_MODULES names no folder")
async def test_a_client_of_another_make_lists_and_calls_the_tools(
    gateway: Gateway, url: str, tmp_path: Path
) -> None:
    key = await api_keys.issue(gateway.resources.postgres, gateway.tenant)
    (tmp_path / "node_modules").symlink_to(MODULES or "")
    shutil.copy(SCRIPT, tmp_path)  # node looks for modules beside the script
    process = await asyncio.create_subprocess_exec(
        "node",
        str(tmp_path / SCRIPT.name),
        f"{url}/mcp",
        key,
        "ada",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, complaints = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, complaints.decode()
    seen = json.loads(output)
    assert [tool["name"] for tool in seen["tools"]][:2] == ["memory_search", "memory_add"]
    assert seen["tools"][0]["annotations"]["readOnlyHint"] is True
    assert "Long-term memory" in seen["instructions"]
    assert "Ada likes trains." in seen["found"]["content"][0]["text"]
    assert seen["missing"]["isError"] is True
    rows = (await gateway.client.get("/v1/memories?user_id=ada")).json()["results"]
    assert [(row["content"], row["user_id"]) for row in rows] == [("Ada likes trains.", "ada")]
