"""Print what the Celery app declares as JSON, in a process of its own, as a worker loads it."""

import json
import sys

from celery import Celery

from shared.foundation import config, stages
from workers.app import app
from workers.runtime import beat


def main(app: Celery) -> None:
    """Print each task with module, function and queue; the tasks of beat and of the stages; the queues."""
    app.loader.import_default_modules()
    router = app.amqp.Router(queues=app.amqp.Queues(app.conf.task_queues))
    tasks = {
        name: [task.__module__, task.__name__, router.route({}, name)["queue"].name]
        for name, task in app.tasks.items()
        if not name.startswith("celery.")
    }
    declarations = {
        "tasks": tasks,
        "beat": [entry["task"] for entry in beat.create_app(config.load()).conf.beat_schedule.values()],
        "stages": [stage.task for stage in stages.STAGES.values()],
        "queues": [queue.name for queue in app.conf.task_queues],
    }
    json.dump(declarations, sys.stdout)


if __name__ == "__main__":
    main(app)
