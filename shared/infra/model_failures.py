"""Tell what an HTTP status of a model endpoint means, and who has to do something about it.

- Nobody: the endpoint is away or busy, and the same request will be answered later (errors.Unavailable).
- An operator: the key, the permission, the name of the model or the quota is wrong, so that every request
  is refused until somebody changes something (errors.ModelRefused).
- The caller: the prompt is too long, so it has to be split (errors.PromptTooLong); or this request is
  refused for another reason (errors.InvalidModelReply).

The text of an endpoint's error decides between these, but it is never repeated: it may quote the request.
"""

import email.utils
import re
import time
from http import HTTPStatus

import httpx
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
_WORDS_OF_ERROR = {"code", "type", "message", "detail", "status", "reason"}


def failure_of(name: str, response: httpx.Response, content: bytes) -> errors.LociError | None:
    """Return the error that a response means, or None for a success."""
    status, words = response.status_code, _error_words(content)
    if status < httpx.codes.MULTIPLE_CHOICES:
        return None
    is_transient = status in _TRANSIENT_STATUSES or status >= httpx.codes.INTERNAL_SERVER_ERROR
    if is_transient and not (status == HTTPStatus.TOO_MANY_REQUESTS and _QUOTA.search(words)):
        return errors.Unavailable(name, f"status {status}", retry_after(response.headers))
    if reason_code := _reason_code(status, words):
        return errors.ModelRefused(name, f"status {status}", reason_code)
    message = f"{name} refused the request with status {status}: {_error_code(content)}"
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or _TOO_LONG.search(words):
        return errors.PromptTooLong(message, rejected_by_endpoint=True)
    return errors.InvalidModelReply(message, rejected_by_endpoint=True)


def _reason_code(status: int, words: str) -> ReasonCode | None:
    """Return why every request is refused, or None if it is only this one, or only for now."""
    if _QUOTA.search(words):
        return ReasonCode.QUOTA_USED_UP
    if status < httpx.codes.BAD_REQUEST:  # a redirect: the address is wrong
        return ReasonCode.MODEL_UNKNOWN
    if status in _CODE_BY_STATUS:
        return _CODE_BY_STATUS[HTTPStatus(status)]
    if _KEY.search(words):
        return ReasonCode.KEY_REFUSED
    return ReasonCode.MODEL_UNKNOWN if _MODEL.search(words) else None


def _error_words(content: bytes) -> str:
    """Return the texts of an error object in lower case, wherever the endpoint puts them."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        return ""
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = error.items() if isinstance(error, dict) else [("message", error)]
    return " ".join(str(text) for field, text in fields if field in _WORDS_OF_ERROR)[:4000].lower()


def _error_code(content: bytes) -> str:
    """Return the endpoint's code or type of the error, never its message, which may quote the request."""
    try:
        error = orjson.loads(content)["error"]
        codes = [error[name] for name in ("code", "type") if isinstance(error.get(name), str)]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return "no reason given"
    return next((code for code in codes if _ERROR_CODE.fullmatch(code)), "no reason given")


def retry_after(headers: httpx.Headers) -> float | None:
    """Return the seconds until the time in Retry-After, which may be a number or a date (RFC 9110)."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        date = email.utils.parsedate_tz(value)
        return max(0.0, email.utils.mktime_tz(date) - time.time()) if date else None
