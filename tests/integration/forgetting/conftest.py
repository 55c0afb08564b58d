"""A look at everything that the databases hold of a tenant."""

from tests import state
from tests.conftest import Gateway


async def records_with(inspector: state.StateInspector, gateway: Gateway, text: str) -> list[str]:
    """Return the names of the rows, keys and points that contain a text."""
    await gateway.resources.index_writer.close()
    content_by_name = await inspector.tenant_state(gateway.tenant)
    return [name for name, content in content_by_name.items() if text in content or text in name]
