"""Tell what an HTTP status of a model endpoint means, and who has to do something about it.

- Nobody: the endpoint is away or busy, and the same request will be answered later (errors.Unavailable).
- An operator: the key, the permission, the name of the model or the quota is wrong, so that every request
  is refused until somebody changes something (errors.ModelRefused).
- The caller: the prompt is too long, so it has to be split (errors.PromptTooLong); or this request is
  refused for another reason (errors.InvalidModelReply).

The text of an endpoint's error decides between these, but it is never repeated: it may quote the request.
For the same reason words that the request has, too, decide nothing: a note about a used-up quota must not
look like one.
"""

import email.utils
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from shared.foundation import errors
from shared.foundation.stages import ReasonCode

_ERROR_CODE = re.compile(r"[A-Za-z][A-Za-z_-]{2,39}")
_TRANSIENT_STATUSES = {408, 409, 425, 429}
_CODE_BY_STATUS = {
    HTTPStatus.UNAUTHORIZED: ReasonCode.KEY_REFUSED,
    HTTPStatus.PAYMENT_REQUIRED: ReasonCode.QUOTA_USED_UP,
    HTTPStatus.FORBIDDEN: ReasonCode.NOT_PERMITTED,
    HTTPStatus.NOT_FOUND: ReasonCode.MODEL_UNKNOWN,
    HTTPStatus.METHOD_NOT_ALLOWED: ReasonCode.MODEL_UNKNOWN,
    HTTPStatus.GONE: ReasonCode.MODEL_UNKNOWN,
}
_QUOTA = re.compile(
    r"insufficient[_ ]quota|exceeded your current quota|quota[_ ]exceeded|out of credits?|credit balance"
    r"|insufficient (?:credits?|balance|funds)|billing"
)
_KEY = re.compile(r"invalid[_ ]api[_ ]key|api key (?:not valid|is invalid|expired)|incorrect api key")
_MODEL = re.compile(
    r"model[_ ]not[_ ]found|model[^.]{0,80}(?:does not exist|not exist|is not supported|unknown)"
)
_TOO_LONG = re.compile(
    r"context[_ ]?(?:length|window|size)|maximum context|too many tokens|string_above_max_length|too[_ ]long"
    r"|too[_ ]large|reduce the length|exceeds?[^.]{0,60}(?:tokens|length)"
)
_LABELS = {"code", "type"}
_PROSE = {"message", "detail", "status", "reason"}
_MAX_WORDS = 4000
_MAX_STATUS = 599
MAX_RETRY_AFTER = 3600.0
"""Seconds. Whoever names a later time is asked again after these: it may be a mistake."""


@dataclass(frozen=True, slots=True)
class _ErrorWords:
    """The texts of an error in lower case, wherever the endpoint puts them, and those of the request.

    `labels` are codes and types, which the endpoint has a list of. `prose` may quote the request.
    """

    labels: str
    prose: str
    request: str

    def say(self, pattern: re.Pattern[str]) -> bool:
        """Tell whether the endpoint says this, and does not only quote it."""
        if pattern.search(self.labels):
            return True
        return any(match[0] not in self.request for match in pattern.finditer(self.prose))


def failure_of(
    name: str, response_status: int, headers: Mapping[str, str], content: bytes, body: Any = None
) -> errors.LociError | None:
    """Return the error that a response to a request with this body means, or None for a success.

    `headers` finds names in lower case.
    """
    status = _status_of(response_status, content)
    if status is None:
        return None
    words = _error_words(content, body)
    is_transient = status in _TRANSIENT_STATUSES or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if is_transient and not (status == HTTPStatus.TOO_MANY_REQUESTS and words.say(_QUOTA)):
        return errors.Unavailable(name, f"status {status}", retry_after(headers))
    if reason_code := _reason_code(status, words):
        return errors.ModelRefused(name, f"status {status}", reason_code)
    message = f"{name} refused the request with status {status}: {_error_code(content)}"
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or words.say(_TOO_LONG):
        return errors.PromptTooLong(message, rejected_by_endpoint=True)
    return errors.InvalidModelReply(message, rejected_by_endpoint=True)


def _status_of(response_status: int, content: bytes) -> int | None:
    """Return the status of an error, or None for a success.

    Gateways before models send errors as a success, too, with the status in the error or with none: then it
    passes by itself.
    """
    if response_status >= HTTPStatus.MULTIPLE_CHOICES:
        return response_status
    if b'"error"' not in content[:_MAX_WORDS]:
        return None
    try:
        answer = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    error = answer.get("error") if isinstance(answer, dict) else None
    if not error or answer.get("choices") or answer.get("data"):
        return None
    code = error.get("code") if isinstance(error, dict) else None
    if type(code) is int and HTTPStatus.BAD_REQUEST <= code <= _MAX_STATUS:
        return code
    return HTTPStatus.BAD_GATEWAY


def _reason_code(status: int, words: _ErrorWords) -> ReasonCode | None:
    """Return why every request is refused, or None if it is only this one, or only for now."""
    if words.say(_QUOTA):
        return ReasonCode.QUOTA_USED_UP
    if status < HTTPStatus.BAD_REQUEST:  # a redirect: the address is wrong
        return ReasonCode.MODEL_UNKNOWN
    if status in _CODE_BY_STATUS:
        return _CODE_BY_STATUS[HTTPStatus(status)]
    if words.say(_KEY):
        return ReasonCode.KEY_REFUSED
    return ReasonCode.MODEL_UNKNOWN if words.say(_MODEL) else None


def _error_words(content: bytes, body: Any) -> _ErrorWords:
    try:
        answer = orjson.loads(content)
    except orjson.JSONDecodeError:
        return _ErrorWords("", "", "")
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    fields = list(error.items()) if isinstance(error, dict) else [("message", error)]
    labels = " ".join(text for field, text in fields if field in _LABELS and isinstance(text, str))
    prose = " ".join(text for field, value in fields if field in _PROSE for text in _texts_of(value))
    request = "\n".join(_texts_of(body)).lower()
    return _ErrorWords(labels[:_MAX_WORDS].lower(), prose[:_MAX_WORDS].lower(), request)


def _texts_of(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts_of(item)


def _error_code(content: bytes) -> str:
    """Return the endpoint's code or type of the error, never its message, which may quote the request."""
    try:
        error = orjson.loads(content)["error"]
        codes = [error[name] for name in ("code", "type") if isinstance(error.get(name), str)]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return "no reason given"
    return next((code for code in codes if _ERROR_CODE.fullmatch(code)), "no reason given")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the time in Retry-After, which may be a number or a date (RFC 9110).

    They are from 0 to MAX_RETRY_AFTER; None if the header names no time.
    """
    seconds = _seconds_until(headers.get("retry-after", ""))
    return None if seconds is None or math.isnan(seconds) else min(max(0.0, seconds), MAX_RETRY_AFTER)


def _seconds_until(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        date = email.utils.parsedate_tz(value)
    try:
        return email.utils.mktime_tz(date) - time.time() if date else None
    except (ValueError, OverflowError):  # a date that no calendar has
        return None
