"""Responses of the routes on memories and working memory."""

from datetime import datetime
from typing import Any

from services.gateway.api_model import ApiModel
from services.gateway.response_models import Problem
from shared.memory.longterm.memory import Memory


class SavedMemories(ApiModel):
    """For each memory, in order, the memory or the problem with it."""

    results: list[Memory | Problem]


class CategoryCount(ApiModel):
    """How many memories a category has, and how many with those beneath it."""

    category: str
    count: int
    total: int


class TagCount(ApiModel):
    """How many memories have a tag."""

    tag: str
    count: int


class MemoryChange(ApiModel):
    """One change of a memory: who made it, when, why, and the fields before and after."""

    created_at: datetime
    actor: str
    action: str
    reason: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class DeletedMemory(ApiModel):
    """Whether there was a memory to delete, and its content."""

    id: str
    deleted: bool
    content: str | None


class DeletedKeyedMemory(ApiModel):
    """Whether a key had a memory to delete, and its id and content."""

    id: str | None
    deleted: bool
    content: str | None


class NamespaceCount(ApiModel):
    """How many memories have a key in a namespace."""

    namespace: str
    count: int


class ClearedEntries(ApiModel):
    """How many entries of working memory were deleted at and beneath a prefix."""

    prefix: str
    deleted: int


class FoundEntry(ApiModel):
    """An entry of working memory that a search found, with its value shortened."""

    key: str
    value: str
    stored_at: datetime
    expires_at: datetime
    category: str | None
    tags: list[str]
    version: int
    score: float


class FoundEntries(ApiModel):
    """The entries of working memory that a search found."""

    results: list[FoundEntry]
    stages: list[str]
    degraded: list[str]
