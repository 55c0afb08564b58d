"""Show the settings: the values in force, or the table of docs/CONFIGURATION.md."""

import os
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from rich.console import Console
from rich.table import Table

from shared.foundation import config, unknown_settings
from shared.foundation.config import Settings
from shared.foundation.feature_settings import FeatureSettings
from shared.foundation.unknown_settings import variable_of

_HEAD = """# Configuration

Every process reads its settings once, at its start, from environment variables. On one machine, `loci up`
adds the addresses of the databases that it starts. A bad value stops the process with the name of the
variable. A variable that begins with `LOCI_` and is no setting is named in a warning at the start and by
`loci doctor`. Times are in seconds and sizes in characters unless said otherwise.

This page is made from `shared/foundation/config.py` and `document_settings.py` by `make configuration`.
"""
# The first setting of each section.
_SECTIONS = {
    "data_dir": "Addresses",
    "llm_base_url": "Models",
    "search_candidates": "Search",
    "working_ttl": "Working memory and conversation",
    "session_max_keys": "Sessions with state",
    "prices_file": "Spend",
    "job_lease": "Jobs and processes",
    "dream_enabled": "Dreams",
    "retention_archived_days": "Retention",
    "heartbeat_file": "Liveness, logs and traces",
    "gateway_body_mb": "Gateways",
    "document_parse_seconds": "Documents",
}


def show() -> None:
    """Print every setting with its value in force, secrets hidden, and name unknown variables."""
    settings, console = config.load(), Console()
    table = Table("variable", "value", "what it is", box=None)
    for field, info in _fields():
        value = getattr(settings, field)
        style = "bold" if value != info.default else ""
        table.add_row(variable_of(field), _format_value(value), _sentence(info), style=style)
    console.print(table)
    for variable, nearest in unknown_settings.unknown_variables(os.environ).items():
        console.print(f"[yellow]{unknown_settings.describe(variable, nearest)}[/yellow]")


def page() -> str:
    """Return the text of docs/CONFIGURATION.md."""
    lines = [_HEAD]
    for field, info in _fields():
        if field in _SECTIONS:
            lines += [f"\n## {_SECTIONS[field]}\n", "| variable | default | what it is |", "|---|---|---|"]
        lines.append(f"| `{variable_of(field)}` | {_default(info)} | {_sentence(info)}{_range(info)} |")
    return "\n".join([*lines, ""])


def _fields() -> list[tuple[str, FieldInfo]]:
    """Return the settings in the order of the page: those of features, which are inherited, come last."""
    return sorted(Settings.model_fields.items(), key=lambda field: field[0] in FeatureSettings.model_fields)


def _sentence(info: FieldInfo) -> str:
    return " ".join((info.description or "").split())


def _default(info: FieldInfo) -> str:
    return "none" if info.default is None else f"`{_format_value(info.default)}`"


def _format_value(value: Any) -> str:
    if isinstance(value, SecretStr):
        return "(hidden)"
    if isinstance(value, frozenset):
        return "[" + ", ".join(f'"{item}"' for item in sorted(value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _range(info: FieldInfo) -> str:
    """Say which values are allowed, if not all of the type."""
    bounds = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    limits = [
        f"{words} {getattr(rule, name):g}"
        for rule in info.metadata
        for name, words in bounds.items()
        if getattr(rule, name, None) is not None
    ]
    choices = [f"`{choice}`" for choice in get_args(info.annotation) if isinstance(choice, str)]
    allowed_values = ", ".join(limits) or ", ".join(choices)
    return f" ({allowed_values})" if allowed_values else ""
