"""MO2: what an endpoint's status means, and that nothing of its message is repeated."""

import json

import pytest

from shared.foundation import errors
from shared.infra import model_failures

SECRET = "zqx-secret"


def failure(status: int, message: str = "", code: str | None = None, **headers: str) -> errors.LociError:
    body = {"error": {"message": f"{SECRET} {message}", "type": "invalid_request_error", "code": code}}
    found = model_failures.failure_of("language model", status, headers, json.dumps(body).encode())
    assert found is not None
    assert SECRET not in str(found)
    return found


@pytest.mark.parametrize(
    ("status", "message", "code", "reason_code"),
    [
        (401, "", None, "key_refused"),
        (400, "API key not valid. Please pass a valid API key.", None, "key_refused"),
        (403, "", None, "not_permitted"),
        (404, "", None, "model_unknown"),
        (404, "The model `m` does not exist", "model_not_found", "model_unknown"),
        (400, "", "model_not_found", "model_unknown"),
        (301, "", None, "model_unknown"),
        (402, "", None, "quota_used_up"),
        (429, "You exceeded your current quota", "insufficient_quota", "quota_used_up"),
        (400, "Your credit balance is too low", None, "quota_used_up"),
        (403, "billing is not active", None, "quota_used_up"),
    ],
)
def test_what_only_an_operator_can_mend(
    status: int, message: str, code: str | None, reason_code: str
) -> None:
    refusal = failure(status, message, code)
    assert isinstance(refusal, errors.ModelRefused)
    assert refusal.reason_code == reason_code


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
def test_what_passes_by_itself(status: int) -> None:
    found = failure(status, **{"retry-after": "7"})
    assert type(found) is errors.Unavailable
    assert found.retry_after == 7


def test_a_rate_limit_is_no_used_up_quota() -> None:
    assert type(failure(429, "Rate limit reached for requests", "rate_limit_exceeded")) is errors.Unavailable


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (413, "", None),
        (400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", None),
        (422, "the request exceeds the available context size", None),
        (400, "Please reduce the length of the messages.", None),
    ],
)
def test_what_is_to_be_split(status: int, message: str, code: str | None) -> None:
    found = failure(status, message, code)
    assert isinstance(found, errors.PromptTooLong)
    assert found.rejected_by_endpoint


@pytest.mark.parametrize("status", [400, 415, 422])
def test_what_is_refused_for_another_reason(status: int) -> None:
    found = failure(status, "unsupported value")
    assert type(found) is errors.InvalidModelReply
    assert found.rejected_by_endpoint


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"[]", b'"text"', b'{"error": "maximum context length"}']
)
def test_an_error_may_have_any_body(content: bytes) -> None:
    assert isinstance(model_failures.failure_of("m", 400, {}, content), errors.InvalidModelReply)


@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b'"text"', b'{"error": null, "choices": [1]}'])
def test_a_success_is_no_failure(content: bytes) -> None:
    assert model_failures.failure_of("m", 200, {}, content) is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 502, "message": "Provider returned error"}, errors.Unavailable),
        ({"code": 429, "message": "Rate limited upstream"}, errors.Unavailable),
        ({"code": "server_error", "message": "try later"}, errors.Unavailable),
        ("overloaded", errors.Unavailable),
        ({"code": 402, "message": "Insufficient credits"}, errors.ModelRefused),
        ({"code": 400, "message": "maximum context length"}, errors.PromptTooLong),
        ({"code": 403, "message": "flagged"}, errors.ModelRefused),
    ],
)
def test_an_error_that_is_sent_as_a_success_is_an_error(error: object, kind: type[errors.LociError]) -> None:
    content = json.dumps({"error": error, "user_id": "u"}).encode()
    assert type(model_failures.failure_of("m", 200, {}, content)) is kind


@pytest.mark.parametrize(
    "note",
    [
        "The invoice system says insufficient_quota when billing is off.",
        "My commute is too long.",
        "The leaflet says: incorrect API key.",
        "The model railway of Jan does not exist any more.",
    ],
)
@pytest.mark.parametrize("status", [400, 422, 429])
def test_words_that_the_endpoint_quotes_from_the_request_decide_nothing(note: str, status: int) -> None:
    body = {"messages": [{"role": "user", "content": json.dumps({"content": note})}]}
    for answer in (
        {"error": {"message": f"Invalid prompt: {note}", "code": "content_policy"}},
        {"detail": [{"loc": ["body"], "msg": "bad", "input": body}]},
    ):
        content = json.dumps(answer).encode()
        found = model_failures.failure_of("m", status, {}, content, body)
        assert type(found) is (errors.Unavailable if status == 429 else errors.InvalidModelReply)


def test_what_the_endpoint_says_itself_counts_beside_what_it_quotes() -> None:
    body = {"messages": [{"role": "user", "content": "Our quota: insufficient_quota"}]}
    content = json.dumps({"error": {"message": "insufficient_quota", "code": "insufficient_quota"}}).encode()
    assert type(model_failures.failure_of("m", 429, {}, content, body)) is errors.ModelRefused
    content = json.dumps({"error": {"message": "Your credit balance is too low"}}).encode()
    assert type(model_failures.failure_of("m", 400, {}, content, body)) is errors.ModelRefused


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        ("-5", 0),
        ("nan", None),
        ("soon", None),
        ("inf", model_failures.MAX_RETRY_AFTER),
        ("1e300", model_failures.MAX_RETRY_AFTER),
        ("-inf", 0),
        ("86400000000", model_failures.MAX_RETRY_AFTER),
        ("Fri, 31 Dec 9999 23:59:59 GMT", model_failures.MAX_RETRY_AFTER),
        ("Fri, 31 Dec 0000 23:59:59 GMT", None),
        ("Fri, 99 Xxx 99999999999 23:59:59 GMT", None),
    ],
)
def test_a_time_to_wait_is_one_that_a_job_can_wait(value: str, seconds: float | None) -> None:
    waited = model_failures.retry_after({"retry-after": value})
    assert waited == seconds or (seconds is None and waited in {None, 0})
