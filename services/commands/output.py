"""Print what a command returns."""

import sys
from typing import Any

import orjson


def print_json(payload: Any) -> None:
    """Print indented JSON and nothing else to standard output, so that a script can read it."""
    sys.stdout.write(orjson.dumps(payload, option=orjson.OPT_INDENT_2).decode() + "\n")
