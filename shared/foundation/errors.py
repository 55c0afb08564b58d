"""Every error that Loci raises on purpose.

    LociError
    ├── Invalid              the input breaks a rule; nothing was stored
    │   ├── TooLarge         … and the rule is a size limit
    │   └── WrongMediaType   … because it is sent as something else than it is to be read as
    ├── Unauthenticated      no key, or one that is unknown, expired or revoked
    ├── Forbidden            the key may not do this
    ├── NotFound             no such object in the caller's scope
    ├── Conflict             the object is not in a state that allows this
    │   ├── KeyUsed          … because its Idempotency-Key stands for another request
    │   ├── Busy             … but soon will be: try again
    │   ├── PreconditionFailed    … that the caller has named as its condition
    │   └── PreconditionRequired  … and the caller must name the state that it replaces
    ├── LimitReached         a limit, named in the message
    │   └── OverBudget       … and the limit is a budget: the model was not called
    ├── Unsupported          a state store has no such operation
    ├── Unavailable          a database or model could not be reached, or refused for now
    │   ├── ModelRefused     … until somebody changes the key, the model's name, the rights or the quota
    │   └── NotAModelReply   … because something else than the model has answered
    ├── InvalidModelReply    a model answered, but not in the form that was requested
    │   └── CutOffReply      … because the answer ends before it is complete
    │       └── PromptTooLong  … or because the prompt alone is too long for the model
    └── Misconfigured        a setting is missing or contradicts what is stored
The message is the sentence that the caller reads. `services.gateway.errors` maps the classes to statuses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.foundation.stages import ReasonCode


class LociError(Exception):
    """The base of all errors that Loci raises on purpose."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: the field (a dotted path) and the rule in words."""

    field: str
    rule: str


class Invalid(LociError):
    """The input breaks a rule; nothing was stored."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.violations = (Violation(field, rule),)


class TooLarge(Invalid):
    """The input is over a size limit; nothing was stored."""


class WrongMediaType(Invalid):
    """The input is not sent as what it is to be read as; nothing was stored."""


class Unauthenticated(LociError):
    """The request carries no valid key."""


class Forbidden(LociError):
    """The key may not do this."""


class NotFound(LociError):
    """The caller's scope has no such object."""


class Conflict(LociError):
    """The object is not in a state that allows this."""


class KeyUsed(Conflict):
    """The Idempotency-Key was used for another request, or for one whose response is gone."""


class Busy(Conflict):
    """The same request is still running; try again after `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StillRunning(Busy):
    """Another request with this Idempotency-Key is running. HTTP 409."""

    def __init__(self) -> None:
        super().__init__("a request with this Idempotency-Key is still running")


class PreconditionFailed(Conflict):
    """The object is not in the state that the caller made a condition; nothing was changed."""


class PreconditionRequired(Conflict):
    """The object exists, and whoever replaces it must say which version; nothing was changed."""


class LimitReached(LociError):
    """A limit was reached; the message names it."""


class Unsupported(LociError):
    """A state store has no such operation for the owner that it was opened for."""

    def __init__(self, store: str, operation: str) -> None:
        super().__init__(f"store '{store}' does not support {operation}")


class OverBudget(LimitReached):
    """A budget would be exceeded, so the model was not called; its window ends in `retry_after` seconds."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unavailable(LociError):
    """A database or a model endpoint cannot serve now.

    `retry_after` (seconds) is set if the dependency named a time. `may_have_run` tells that the
    request was sent and no response came: the dependency may have done the work, and may charge for it.
    `uses_attempt` tells that other requests were answered meanwhile, so that this one may be to blame.
    """

    def __init__(
        self, dependency: str, reason: str, retry_after: float | None = None, *, may_have_run: bool = False
    ) -> None:
        super().__init__(f"{dependency} is unavailable: {reason}")
        self.dependency = dependency
        self.reason = reason
        self.retry_after = retry_after
        self.may_have_run = may_have_run
        self.uses_attempt = False


class ModelRefused(Unavailable):
    """A model endpoint refuses every request until somebody changes something.

    `reason_code` tells what: the key, the permission, the name of the model, the quota, or the request.
    `begins_pause` tells that the stage was not paused: the model answered others before.
    """

    def __init__(
        self, dependency: str, reason: str, reason_code: ReasonCode, retry_after: float | None = None
    ) -> None:
        super().__init__(dependency, f"{reason}, {reason_code}", retry_after)
        self.reason_code = reason_code
        self.begins_pause = False


class NotAModelReply(Unavailable):
    """A model endpoint answered what no model answers: a page, nothing, or JSON of another service.

    Something stands in the model's place, so the request is not to blame, unless others are answered.
    """


class InvalidModelReply(LociError):
    """A model answered, but not in the form that was requested.

    `usage` is the usage object of the response. `rejected_by_endpoint` tells that the endpoint refused
    the request with an HTTP status: nothing was used.
    """

    def __init__(
        self, message: str, *, usage: Mapping[str, Any] | None = None, rejected_by_endpoint: bool = False
    ) -> None:
        super().__init__(message)
        self.usage = usage
        self.rejected_by_endpoint = rejected_by_endpoint


class CutOffReply(InvalidModelReply):
    """A model's answer ends before it is complete, so nothing of it counts.

    What it should cover is to be asked again in smaller parts. The same question would be cut off again.
    """


class PromptTooLong(CutOffReply):
    """The prompt is longer than the model takes, and is to be split as after a cut-off answer."""


class Misconfigured(LociError):
    """A setting is missing or contradicts what is stored."""
