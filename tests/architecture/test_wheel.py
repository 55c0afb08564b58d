"""A wheel contains the four packages completely, and nothing else."""

import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.architecture.tree import PACKAGES, tracked


@pytest.fixture(scope="module")
def wheel_names(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Build the wheel and return the names in it."""
    builder = WheelBuilder(str(repository))
    (wheel,) = builder.build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_has_the_packages_and_nothing_else(wheel_names: set[str]) -> None:
    tops = {name.partition("/")[0] for name in wheel_names}
    (about,) = [top for top in tops if top.endswith(".dist-info")]
    assert tops == {*PACKAGES, about}
    assert not [name for name in wheel_names if "__pycache__" in name or name.endswith(".pyc")]
    assert any(name.startswith(f"{about}/licenses/") for name in wheel_names)


def test_every_tracked_file_of_a_package_is_in_the_wheel(wheel_names: set[str], repository: Path) -> None:
    """This includes the directives and the templates of migrations, which are no Python files."""
    files = {str(path.relative_to(repository)) for path in tracked(repository, *PACKAGES)}
    assert files <= wheel_names
    assert {"shared/platform/directives/memory-rules.md", "migrations/script.py.mako"} <= wheel_names
    assert any(name.startswith("migrations/versions/a001") for name in wheel_names)


def test_the_command_is_in_the_wheel(wheel_names: set[str]) -> None:
    assert any(name.endswith(".dist-info/entry_points.txt") for name in wheel_names)
