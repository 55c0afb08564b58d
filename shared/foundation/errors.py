"""Every error that Loci raises on purpose.

    LociError
    ├── Invalid            the input breaks a rule; nothing was stored
    │   └── TooLarge       … the rule being a size
    ├── Unauthenticated    no key, or one that is unknown, expired or revoked
    ├── Forbidden          the key may not do this
    ├── NotFound           no such thing in the caller's scope
    ├── Conflict           the thing is not in a state that allows this
    │   └── Busy           … and soon will be: try again
    ├── LimitReached       a limit, named in the message
    │   └── OverBudget     … the limit being a budget: the model was not asked
    ├── Unsupported        a store has no such operation
    ├── Unavailable        a store or model could not be reached or refused for now
    ├── BadReply           a model answered, but not what was asked
    └── Misconfigured      a setting is missing or contradicts what is stored

The message is the sentence that the caller reads. `services.gateway.errors` maps each
class to a status; nothing here knows HTTP.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class LociError(Exception):
    """Something went wrong that Loci has a word for."""


@dataclass(frozen=True)
class Violation:
    """One broken rule: the field (dotted path) and the rule in words."""

    field: str
    rule: str


class Invalid(LociError):
    """The input breaks a rule; nothing was stored."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.violations = (Violation(field, rule),)


class TooLarge(Invalid):
    """The input is over a size limit; nothing was stored."""


class Unauthenticated(LociError):
    """The request carries no valid key."""


class Forbidden(LociError):
    """The key may not do this."""


class NotFound(LociError):
    """There is no such thing in the caller's scope."""


class Conflict(LociError):
    """The thing is not in a state that allows this."""


class Busy(Conflict):
    """The same request is still running; try again after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class LimitReached(LociError):
    """A limit was reached; the message names it."""


class Unsupported(LociError):
    """A store has no such operation, for the owner that it was opened for."""

    def __init__(self, store: str, operation: str) -> None:
        super().__init__(f"store '{store}' does not support {operation}")


class OverBudget(LimitReached):
    """A budget would be overrun, so the model was not asked; its window ends in `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(LociError):
    """A store or a model endpoint cannot serve now.

    `retry_after` (seconds) is set when the other side said when to come back. `unanswered` says that
    the question had gone out and no answer came: the other side may have worked, and may bill it.
    """

    def __init__(
        self, dependency: str, reason: str, retry_after: float | None = None, *, unanswered: bool = False
    ) -> None:
        super().__init__(f"{dependency} is unavailable: {reason}")
        self.dependency = dependency
        self.retry_after = retry_after
        self.may_have_run = unanswered


class InvalidModelReply(LociError):
    """A model answered, but not what was asked.

    `usage` is what it says to have used for that. `refused` says that it answered with a status of
    refusal: nothing was used.
    """

    def __init__(
        self, message: str, *, usage: Mapping[str, Any] | None = None, refused: bool = False
    ) -> None:
        super().__init__(message)
        self.usage = usage
        self.rejected_by_endpoint = refused


class Misconfigured(LociError):
    """A setting is missing, or contradicts what is stored."""
