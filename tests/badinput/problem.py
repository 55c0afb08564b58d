"""What a refusal must look like: RFC 9457, with the field and the rule."""

from http import HTTPStatus
from typing import Any

import httpx

MEMBERS = {"type", "title", "status", "detail", "errors"}


def read(answer: httpx.Response) -> dict[str, Any]:
    """Return the problem that an answer tells; fail if it is not a whole one."""
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    problem: dict[str, Any] = answer.json()
    assert set(problem) == MEMBERS
    assert problem["status"] == answer.status_code
    assert problem["title"] == HTTPStatus(answer.status_code).phrase
    assert problem["detail"].strip()
    assert all(one["field"] and one["rule"] for one in problem["errors"])
    assert "Traceback" not in answer.text
    return problem


def names(answer: httpx.Response, field: str, rule: str = "") -> bool:
    """Tell whether a refusal names this field with this rule."""
    problem = read(answer)
    return any(one["field"] == field and rule in one["rule"] for one in problem["errors"])
