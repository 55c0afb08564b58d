"""One tenant's working memory in Redis: the names of its keys there, and how scripts are run on them.

Redis keys are built here and nowhere else, so no caller can name another tenant's. A `:` separates tenant and
namespace, because a tenant's name cannot contain one. With `/`, tenant `a/b` with namespace `c` would share
its keys with tenant `a` and namespace `b/c`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from redis.asyncio import Redis

from shared.foundation import validation
from shared.foundation.config import Settings
from shared.foundation.content import Subject, declare_store
from shared.platform.resources import Resources

FAMILY = declare_store(
    "redis",
    "working",
    *(Subject.SESSION, Subject.USER, Subject.AGENT),
    reason="a session's namespace is cleared with it, those of patrols and subagents with user or agent",
)


class ScriptCall(NamedTuple):
    """A script with the keys in Redis that it works on, and its arguments."""

    script: str
    names: Sequence[str]
    arguments: Sequence[str | int] = ()


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """One tenant's working memory. The client must decode responses."""

    redis: Redis
    settings: Settings
    tenant: str

    def __post_init__(self) -> None:
        validation.check_identifier(self.tenant, "tenant")

    @classmethod
    def from_resources(cls, resources: Resources, tenant: str) -> "WorkingMemory":
        """Return a tenant's working memory in the Redis of this process."""
        return cls(resources.redis, resources.settings, tenant)

    async def run(self, calls: Iterable[ScriptCall]) -> list[Any]:
        """Run scripts in order and in one round trip. Each is atomic; together they are not."""
        async with self.redis.pipeline(transaction=False) as pipe:
            for script, names, arguments in calls:
                pipe.eval(script, len(names), *names, *arguments)
            return await pipe.execute()

    def keys_of(self, namespace: str) -> tuple[str, str, str, str]:
        """Return the keys of a normalised namespace, in the order in which scripts take them."""
        tag = f"{self.settings.prefix}:{FAMILY}:{{{self.tenant}:{namespace}}}"
        return f"{tag}:expiry", f"{tag}:meta", f"{tag}:values", f"{tag}:requests"

    @property
    def registry(self) -> tuple[str, str]:
        """The keys of the list of namespaces."""
        tag = f"{self.settings.prefix}:{FAMILY}:{{{self.tenant}}}"
        return f"{tag}:namespaces", f"{tag}:expiries"
