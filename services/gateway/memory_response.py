"""A memory as a response, with its version as an entity tag."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from services.gateway import etag
from services.gateway.responses import JsonResponse
from shared.memory.longterm.memory import Memory


def memory_response(memory: Memory, status: HTTPStatus = HTTPStatus.OK) -> JsonResponse:
    """Return a memory."""
    return versioned_response(memory.model_dump(mode="json"), status)


def versioned_response(memory: Mapping[str, Any], status: HTTPStatus) -> JsonResponse:
    """Return a memory that is JSON already."""
    # A response that was stored for an idempotency key before memories showed their version has none.
    headers = {"etag": etag.to_etag(memory["version"])} if "version" in memory else {}
    return JsonResponse(memory, status, headers)
