"""One OpenAI-compatible endpoint: how a request is sent and what its failures mean.

No retries here: a row of `work` is what is retried. No redirects, no proxies from the
environment, and a bound on the answer's size: an endpoint is configured, not trusted.
"""

import email.utils
import re
import time
from typing import Any

import httpx
import orjson
from pydantic import SecretStr

from shared.foundation import errors
from shared.infra.telemetry import traces

MAX_ANSWER_BYTES = 64 * 1024 * 1024
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]{2,39}")
_TRY_AGAIN = {408, 409, 425, 429}
_NEVER_ASKED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class ModelEndpoint:
    """Post JSON to one base URL; raise Unavailable for what may pass, BadReply for what won't."""

    def __init__(self, name: str, base_url: str, api_key: SecretStr | None, timeout: float) -> None:
        headers = {"authorization": f"Bearer {api_key.get_secret_value()}"} if api_key else {}
        self.name = name
        self._client = httpx.AsyncClient(
            base_url=base_url.rstrip("/") + "/",
            headers=headers,
            timeout=timeout,
            trust_env=False,
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=16),
        )

    async def post(self, path: str, body: dict[str, Any], timeout: float | None = None) -> Any:
        """Return the answer's JSON."""
        with traces.span(f"POST {path}", "client") as span:
            headers = {traces.HEADER: trace} if (trace := traces.traceparent()) else {}
            response, content = await self._asked(path, body, headers, timeout)
            span.set_attributes(**{"http.response.status_code": response.status_code})
            self._check(response, content)
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:
            raise errors.InvalidModelReply(f"{self.name} answered something that is not JSON") from None

    async def _asked(
        self, path: str, body: dict[str, Any], headers: dict[str, str], timeout: float | None
    ) -> tuple[httpx.Response, bytes]:
        limit = timeout or httpx.USE_CLIENT_DEFAULT
        try:
            async with self._client.stream(
                "POST", path, json=body, headers=headers, timeout=limit
            ) as response:
                return response, await _bounded(response)
        except httpx.HTTPError as error:
            asked = not isinstance(error, _NEVER_ASKED)
            raise errors.Unavailable(self.name, type(error).__name__, unanswered=asked) from error

    def _check(self, response: httpx.Response, content: bytes) -> None:
        status = response.status_code
        if status in _TRY_AGAIN or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise errors.Unavailable(self.name, f"status {status}", retry_after(response.headers))
        if status >= httpx.codes.MULTIPLE_CHOICES:
            told = f"{self.name} refused the request with status {status}: {_said(content)}"
            raise errors.InvalidModelReply(told, refused=True)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


async def _bounded(response: httpx.Response) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:
            raise errors.InvalidModelReply(f"the answer is over {MAX_ANSWER_BYTES} bytes")
    return bytes(content)


def _said(content: bytes) -> str:
    """Return the endpoint's own word for the error, never its message: that may quote the request."""
    try:
        error = orjson.loads(content)["error"]
        told = [error[name] for name in ("code", "type") if isinstance(error.get(name), str)]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return "no reason given"
    return next((word for word in told if _WORD.fullmatch(word)), "no reason given")


def usage_of(answer: Any) -> dict[str, Any]:
    """Return the usage object of an answer of whatever shape; empty if it has none."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    return usage if isinstance(usage, dict) else {}


def retry_after(headers: httpx.Headers) -> float | None:
    """Read Retry-After, in seconds from now, from either of its forms."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        when = email.utils.parsedate_tz(value)
        return max(0.0, email.utils.mktime_tz(when) - time.time()) if when else None
