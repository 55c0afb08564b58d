"""Run Flower, the web interface of the workers, with the broker alone.

Flower learns the names of tasks from the workers' events, so no task is imported. Its command is run without
the `celery` command around it, which imports all of its other subcommands.
"""

from collections.abc import Sequence
from types import SimpleNamespace

import click
from flower.command import flower

from shared.foundation.config import Settings
from shared.infra.broker import celery_app


def run(settings: Settings, options: Sequence[str]) -> None:
    """Serve Flower with these options of its command until a signal stops the process."""
    celery_objects = SimpleNamespace(app=celery_app(settings), quiet=False)
    celery_context = click.Context(click.Command("celery"), obj=celery_objects)
    with flower.make_context("flower", list(options), parent=celery_context) as context:
        flower.invoke(context)
