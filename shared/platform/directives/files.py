"""Directives as files: the operator's, or the ones that come with Loci. Those also say which names exist."""

from importlib.resources import files

import structlog

from shared.foundation import errors
from shared.foundation.config import Settings
from shared.platform.directives.directive import MAX_TEXT, Directive, Origin

log = structlog.get_logger()
_BUILT_IN = files(__package__)


def names() -> list[str]:
    """Return the names of all directives there are, sorted."""
    return sorted(path.name.removesuffix(".md") for path in _BUILT_IN.iterdir() if path.name.endswith(".md"))


def check_name(name: str) -> None:
    """Raise errors.NotFound unless there is a directive of this name; a path is never one."""
    if name not in names():
        raise errors.NotFound(f"no directive of this name; there are: {', '.join(names())}")


def read_file(settings: Settings, tenant: str, name: str) -> Directive:
    """Return the operator's file for this tenant, for all, or the built-in one.

    An unreadable or blank file falls back to the next, and says so in the log.
    """
    check_name(name)
    text = _operators(settings, tenant, name)
    if text:
        return Directive.create(name, text, Origin.FILE)
    built_in = _BUILT_IN.joinpath(f"{name}.md").read_text(encoding="utf-8")
    return Directive.create(name, built_in.strip(), Origin.BUILT_IN)


def _operators(settings: Settings, tenant: str, name: str) -> str:
    if settings.directives_dir is None:
        return ""
    for path in (settings.directives_dir / tenant / f"{name}.md", settings.directives_dir / f"{name}.md"):
        try:
            text = path.read_text(encoding="utf-8")[:MAX_TEXT].strip()
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            log.warning("directive_unreadable", directive=name, reason=type(error).__name__)
            continue
        if text:
            return text
        log.warning("directive_blank", directive=name)
    return ""
