"""Directives: what models are told to do, as files that an operator can replace.

Looked for at every run, so a changed file needs no restart: first
`<LOCI_DIRECTIVES_DIR>/<tenant>/<name>.md`, then `<LOCI_DIRECTIVES_DIR>/<name>.md`, then the one
beside this module. An unreadable or blank file falls back to the next, and says so in the log.
"""

from importlib.resources import files

import structlog

from shared.config import Settings

log = structlog.get_logger()
_MAX_CHARS = 100_000


def read(settings: Settings, tenant: str, name: str) -> str:
    """Return the text of a directive as this tenant has it."""
    if settings.directives_dir is not None:
        for path in (settings.directives_dir / tenant / f"{name}.md", settings.directives_dir / f"{name}.md"):
            try:
                text = path.read_text(encoding="utf-8")[:_MAX_CHARS].strip()
            except FileNotFoundError:
                continue
            except (OSError, UnicodeDecodeError) as error:
                log.warning("directive_unreadable", directive=name, reason=type(error).__name__)
                continue
            if text:
                return text
            log.warning("directive_blank", directive=name)
    return files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()
