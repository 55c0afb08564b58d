"""An agent's files: bytes under a name, kept and given back as they came."""

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.platform.agents import queries
from shared.platform.agents.agent import MAX_FILE, AgentFile, check_content_type, check_name
from shared.platform.agents.profile import agent_scope
from shared.platform.resources import Resources


async def put(
    resources: Resources, caller: Caller, agent_id: str, name: str, content: bytes, content_type: str
) -> AgentFile:
    """Write a file; errors.TooLarge over 1 MiB."""
    whose = agent_scope(caller, agent_id)
    check_name(name)
    check_content_type(content_type)
    if len(content) > MAX_FILE:
        raise errors.TooLarge("body", f"must be at most {MAX_FILE} bytes")
    async with resources.postgres.for_tenant(whose.tenant) as connection:
        root = await queries.lock(connection, whose.tenant, whose.agent_id)
        return await queries.put_file(connection, root, name, content, content_type)


async def get(resources: Resources, caller: Caller, agent_id: str, name: str) -> tuple[bytes, str]:
    """Return the bytes of a file and their content type; raise errors.NotFound for an unknown one."""
    whose = agent_scope(caller, agent_id)
    check_name(name)
    async with resources.postgres.for_tenant(whose.tenant) as connection:
        found = await queries.file(connection, whose.tenant, whose.agent_id, name)
    if found is None:
        raise errors.NotFound(f"file not found: {name}")
    return found


async def list_files(resources: Resources, caller: Caller, agent_id: str) -> list[AgentFile]:
    """Return what files there are, by name."""
    whose = agent_scope(caller, agent_id)
    async with resources.postgres.for_tenant(whose.tenant) as connection:
        return await queries.files(connection, whose.tenant, whose.agent_id)


async def remove(resources: Resources, caller: Caller, agent_id: str, name: str) -> bool:
    """Delete a file; tell whether it was there."""
    whose = agent_scope(caller, agent_id)
    check_name(name)
    async with resources.postgres.for_tenant(whose.tenant) as connection:
        return await queries.remove_file(connection, whose.tenant, whose.agent_id, name)
