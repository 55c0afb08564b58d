"""A query parameter that a route does not declare is refused on every route, by its name."""

from typing import Any

from services.gateway.app import create_app
from tests.badinput import problem
from tests.badinput.conftest import CheckedGateway

_UNKNOWN = "colour"


def _routes() -> list[tuple[str, str, frozenset[str]]]:
    """Return method, path and declared query parameters of every route under /v1, from the document."""
    paths: dict[str, Any] = create_app().openapi()["paths"]
    return [
        (method.upper(), path, frozenset(_query_names(operation)))
        for path, operations in paths.items()
        if path.startswith("/v1/")
        for method, operation in operations.items()
    ]


def _query_names(operation: dict[str, Any]) -> list[str]:
    return [field["name"] for field in operation.get("parameters", ()) if field["in"] == "query"]


ROUTES = _routes()


def test_the_document_has_routes_with_and_without_query_parameters() -> None:
    assert len(ROUTES) > 60
    assert {bool(declared) for _, _, declared in ROUTES} == {True, False}


async def test_an_unknown_query_parameter_is_refused_by_name_on_every_route_and_changes_nothing(
    gateway: CheckedGateway,
) -> None:
    async with gateway.unchanged():
        responses = [
            await gateway.send(method, _filled(path), {}, params={_UNKNOWN: "red"})
            for method, path, _ in ROUTES
        ]
    for (method, path, declared), response in zip(ROUTES, responses, strict=True):
        assert response.status_code == 422, f"{method} {path}"
        assert problem.names_violation(response, _UNKNOWN, "no query parameter"), f"{method} {path}"
        assert all(name in response.json()["detail"] for name in declared), f"{method} {path}"


async def test_declared_query_parameters_are_not_unknown(gateway: CheckedGateway) -> None:
    for method, path, declared in ROUTES:
        response = await gateway.send(method, _filled(path), {}, params=dict.fromkeys(declared, ""))
        assert "no query parameter" not in response.text, f"{method} {path}"


async def test_a_repeated_query_parameter_is_refused_by_name_unless_it_is_a_list(
    gateway: CheckedGateway,
) -> None:
    lists = set()
    async with gateway.unchanged():
        for method, path, declared in ROUTES:
            for name in declared:
                response = await gateway.send(method, _filled(path), {}, params=[(name, "1"), (name, "1")])
                if response.status_code == 422 and problem.names_violation(response, name, "given once"):
                    continue
                lists.add((method, path, name))
    assert lists == {
        ("GET", "/v1/memories", "tag"),
        ("GET", "/v1/memories", "metadata"),
        ("GET", "/v1/sessions", "metadata"),
    }
    response = await gateway.client.get("/v1/memories", params=[("limit", "1"), ("limit", "2")])
    assert problem.names_violation(response, "limit", "must be given once")
    assert (await gateway.client.get("/v1/memories", params=[("tag", "a"), ("tag", "b")])).status_code == 200


async def test_a_path_names_all_of_its_methods_to_a_request_with_another_one(gateway: CheckedGateway) -> None:
    methods = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    async with gateway.unchanged():
        for path in {path for _, path, _ in ROUTES}:
            responses = {
                # Where there is such a method, the parameter is refused, and nothing is done.
                method: await gateway.send(method, _filled(path), params={_UNKNOWN: "red"})
                for method in methods
            }
            refused = [method for method in methods if responses[method].status_code == 405]
            assert "OPTIONS" in refused
            allowed = ", ".join(sorted(set(methods) - set(refused)))
            for method in refused:
                assert responses[method].headers["allow"] == allowed, f"{method} {path}"
                assert allowed in problem.parse_problem(responses[method])["detail"]


async def test_a_misspelt_filter_does_not_list_everything(gateway: CheckedGateway) -> None:
    await gateway.client.post("/v1/memories", json={"content": "The gate is open.", "tags": ["door"]})
    response = await gateway.client.get("/v1/memories", params={"tags": "window"})
    assert problem.names_violation(response, "tags", "tag")


async def test_without_a_valid_key_a_request_learns_only_that(gateway: CheckedGateway) -> None:
    response = await gateway.client.get(
        "/v1/memories", params={_UNKNOWN: "red"}, headers={"authorization": "Bearer wrong"}
    )
    assert response.status_code == 401


async def test_probes_may_be_asked_with_any_parameter(gateway: CheckedGateway) -> None:
    assert (await gateway.client.get("/healthz", params={"t": "1"})).status_code == 200


def _filled(path: str) -> str:
    """Return a path whose parameters have values that no record has."""
    numbered = path.replace("{seq}", "7")
    segments = ["nothing" if segment.startswith("{") else segment for segment in numbered.split("/")]
    return "/".join(segments)
