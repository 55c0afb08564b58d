"""Call a tool: parse what the model wrote, run the tool, and say in words what went wrong.

An error that a model can react to is an answer, not a failed request: it says what to do next.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from services.gateway import errors as gateway_errors
from services.gateway import metrics
from services.gateway.api_model import parse
from services.gateway.tools import invocation, registry
from services.gateway.tools.invocation import Identity
from services.gateway.tools.tool import Tool
from shared.foundation import errors
from shared.platform.idempotency.idempotent import IdempotencyKey
from shared.platform.resources import Resources

# The first class that an error is an instance of decides.
_NEXT_STEPS: Mapping[type[errors.LociError], str] = {
    errors.Invalid: "Correct the arguments and call the tool again.",
    errors.Forbidden: "This can't be done with the key in use: go on without it.",
    errors.Busy: "Call the tool again in a moment.",
    errors.Conflict: "Look at what is stored now, then decide.",
    errors.LimitReached: "Delete what is no longer needed, or go on without.",
    errors.Unavailable: "Go on without it, and try again later.",
}
_MISSING_SESSION = "The header Loci-Session must name a session that this key may use: tell the user."
_UNEXPECTED = "An unexpected error; it has been logged. Go on without it."


class Answer(NamedTuple):
    """What the model reads, and whether it is about an error."""

    content: str
    is_error: bool = False


async def call_tool(
    resources: Resources,
    identity: Identity,
    name: str,
    arguments: Mapping[str, Any],
    idempotency_key: IdempotencyKey | None = None,
) -> Answer:
    """Call a tool and return its answer.

    Raise errors.NotFound for an unknown tool, and errors.Forbidden for one that the key may never call. Raise
    errors.KeyUsed and errors.StillRunning for an idempotency key: they concern the program, not the model.
    """
    tool = registry.find(name)
    registry.require_callable(tool, identity)
    try:
        answer = await _run(tool, resources, identity, arguments, idempotency_key)
    except errors.LociError:
        raise
    except Exception as error:  # noqa: BLE001  (an MCP client would be left without an answer)
        gateway_errors.log_unexpected(error)
        answer = Answer(_UNEXPECTED, is_error=True)
    metrics.count_tool_call(name, "error" if answer.is_error else "ok")
    return answer


async def _run(
    tool: Tool,
    resources: Resources,
    identity: Identity,
    arguments: Mapping[str, Any],
    idempotency_key: IdempotencyKey | None,
) -> Answer:
    missing = _MISSING_SESSION
    try:
        registry.require_needs(tool, identity)
        call = await invocation.begin(resources, identity, idempotency_key)
        missing = tool.if_missing
        return Answer(await tool.run(call, _parse(tool, arguments)))
    except (errors.KeyUsed, errors.StillRunning):
        raise
    except errors.LociError as error:
        return Answer(_explain(error, missing), is_error=True)


def _parse(tool: Tool, arguments: Mapping[str, Any]) -> Any:
    """Return the arguments. A null is one that was not given: strict schemas require every name."""
    given = {name: value for name, value in arguments.items() if value is not None}
    return parse(tool.arguments, given, "arguments")


def _explain(error: errors.LociError, missing: str) -> str:
    """Return an error with what to do next; `missing` is that for something that is not there."""
    next_step = next((step for kind, step in _NEXT_STEPS.items() if isinstance(error, kind)), missing)
    return f"{gateway_errors.shortened(str(error)).rstrip('.')}. {next_step}".rstrip()
