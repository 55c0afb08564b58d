"""Run a stack of stand-ins in the foreground, as `loci up` does: `foreground.py <roles as JSON>`."""

import json
import sys

from services.local.stack import Stack
from shared.foundation import config
from tests.integration.local import programs

if __name__ == "__main__":
    commands = programs.programs(**json.loads(sys.argv[1]))
    sys.exit(Stack(config.load(), commands=commands).run())
