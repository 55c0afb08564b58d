"""A task is named folder.function, belongs to its folder's queue, and has at most ten lines."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.tree import functions, length, tracked, tree_of


@pytest.fixture(scope="module")
def declared(repository: Path) -> dict[str, Any]:
    env = os.environ | {"LOCI_REDIS_URL": "redis://127.0.0.1:1/0"}
    command = [sys.executable, "-m", "tests.architecture.celery_app"]
    result = subprocess.run(command, cwd=repository, env=env, capture_output=True, check=True)
    declarations: dict[str, Any] = json.loads(result.stdout)
    return declarations


def test_a_task_is_named_by_folder_and_function_and_its_queue_is_the_folder(declared: dict[str, Any]) -> None:
    assert declared["tasks"]
    for name, (module, function, queue) in declared["tasks"].items():
        package, folder, file = module.split(".")
        assert (package, file) == ("workers", "tasks")
        assert name == f"{folder}.{function}"
        assert queue == folder


def test_every_folder_that_declares_tasks_is_loaded_and_has_a_queue(
    declared: dict[str, Any], repository: Path
) -> None:
    folders = {path.parent.name for path in tracked(repository, "workers/*/tasks.py")}
    assert folders == {name.partition(".")[0] for name in declared["tasks"]}
    assert folders == set(declared["queues"])


def test_the_tasks_of_beat_and_of_the_stages_exist(declared: dict[str, Any]) -> None:
    assert declared["beat"]
    assert declared["stages"]
    assert {*declared["beat"], *declared["stages"]} <= set(declared["tasks"])


def test_a_task_body_is_at_most_ten_lines(repository: Path) -> None:
    lengths = {
        f"{path.parent.name}.{function.name}": length(function)
        for path in tracked(repository, "workers/*/tasks.py")
        for function in functions(tree_of(path))
    }
    assert lengths
    assert max(lengths.values()) <= 10
