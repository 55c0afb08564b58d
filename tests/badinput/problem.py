"""Check that a refusal is a problem (RFC 9457) that names the field and the rule."""

from http import HTTPStatus
from typing import Any

import httpx

MEMBERS = {"type", "title", "status", "detail", "errors"}


def parse_problem(response: httpx.Response) -> dict[str, Any]:
    """Return the problem in a response. Fail if it is incomplete."""
    assert 400 <= response.status_code < 500, response.text
    assert response.headers["content-type"] == "application/problem+json", response.text
    problem: dict[str, Any] = response.json()
    assert set(problem) == MEMBERS
    assert problem["status"] == response.status_code
    assert problem["title"] == HTTPStatus(response.status_code).phrase
    assert problem["detail"].strip()
    assert all(violation["field"] and violation["rule"] for violation in problem["errors"])
    assert "Traceback" not in response.text
    return problem


def names_violation(response: httpx.Response, field: str, rule: str = "") -> bool:
    """Return whether a refusal names this field, with a rule that contains `rule`."""
    problem = parse_problem(response)
    return any(violation["field"] == field and rule in violation["rule"] for violation in problem["errors"])
