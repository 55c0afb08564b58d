"""An agent's files: bytes under a name, returned exactly as they were written."""

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.platform.agents import queries
from shared.platform.agents.agent import MAX_FILE_BYTES, AgentFile, check_content_type, check_name
from shared.platform.agents.profile import agent_scope
from shared.platform.auth.rights import Action
from shared.platform.resources import Resources


async def put(
    resources: Resources, caller: Caller, agent_id: str, name: str, content: bytes, content_type: str
) -> AgentFile:
    """Write a file. Raise errors.TooLarge over 1 MiB."""
    scope = agent_scope(caller, agent_id, Action.WRITE)
    check_name(name)
    check_content_type(content_type)
    if len(content) > MAX_FILE_BYTES:
        raise errors.TooLarge("body", f"must be at most {MAX_FILE_BYTES} bytes")
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        profile = await queries.lock(tx, scope.agent_id)
        return await queries.put_file(tx, profile, name, content, content_type)


async def get(resources: Resources, caller: Caller, agent_id: str, name: str) -> tuple[bytes, str]:
    """Return the bytes of a file and their content type. Raise errors.NotFound for an unknown file."""
    scope = agent_scope(caller, agent_id, Action.READ)
    check_name(name)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        file = await queries.read_file(tx, scope.agent_id, name)
    if file is None:
        raise errors.NotFound(f"file not found: {name}")
    return file


async def list_files(resources: Resources, caller: Caller, agent_id: str) -> list[AgentFile]:
    """Return an agent's files without their content, by name."""
    scope = agent_scope(caller, agent_id, Action.READ)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await queries.list_files(tx, scope.agent_id)


async def remove(resources: Resources, caller: Caller, agent_id: str, name: str) -> bool:
    """Delete a file and return whether it existed."""
    scope = agent_scope(caller, agent_id, Action.WRITE)
    check_name(name)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await queries.remove_file(tx, scope.agent_id, name)
