"""The import contracts in pyproject.toml are kept: packages import only those below them."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.architecture.tree import parse, sources, tracked, tree_of

_OUTER = ["services.gateway.routes", "services.gateway.tools"]


def test_every_import_contract_is_kept(repository: Path) -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    result = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    contracts = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    summary = re.search(r"Contracts: (\d+) kept, 0 broken", result.stdout)
    assert summary is not None
    assert int(summary[1]) == len(contracts) > 0


def test_no_route_may_import_a_module_of_statements_whatever_its_name(repository: Path) -> None:
    """A contract can't name `*_queries`, because a wildcard stands for a whole name. So each is listed."""
    contracts = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    [contract] = [item for item in contracts if item.get("source_modules") == _OUTER]
    names = {path.stem for path in sources(repository) if re.fullmatch(r"(.+_)?queries", path.stem)}
    assert {f"shared.**.{name}" for name in names} | {"shared.infra"} == set(contract["forbidden_modules"])


def test_no_route_opens_a_transaction_or_asks_a_database(repository: Path) -> None:
    """Routes get the clients with the resources, so a contract on imports can't see their use."""
    names = {"for_tenant", "across_tenants", "autocommit", "redis", "qdrant"}
    uses = [
        f"{path.name}:{node.lineno}"
        for path in (repository / "services" / "gateway" / "routes").glob("*.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr in names
    ]
    assert not uses


def test_no_module_imports_a_test_module(repository: Path) -> None:
    """What two of them need stands in a module beside them: else one test can't change without the other."""
    modules = parse(tracked(repository, "tests/**.py", "benchmarks/**.py"))
    imports = [
        f"{path.relative_to(repository)}:{node.lineno} imports {name}"
        for path, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in _imported(node)
        if name.startswith("tests.") and _is_test_module(repository, name)
    ]
    assert not imports


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the names of all that may be a module in an import."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        return names
    return [node.module or "", *(f"{node.module}.{name}" for name in names)]


def _is_test_module(repository: Path, name: str) -> bool:
    path = repository.joinpath(*name.split(".")).with_suffix(".py")
    return path.stem.startswith("test_") and path.is_file()
