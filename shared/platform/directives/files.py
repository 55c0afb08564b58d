"""Directives as files: the operator's files, and the built-in ones, which define the names that exist."""

from importlib.resources import files

import structlog

from shared.foundation import errors
from shared.foundation.config import Settings
from shared.platform.directives.directive import MAX_TEXT, Directive, DirectiveOrigin

log = structlog.get_logger()
_BUILT_IN = files(__package__)


def names() -> list[str]:
    """Return the names of all directives, sorted."""
    return sorted(path.name.removesuffix(".md") for path in _BUILT_IN.iterdir() if path.name.endswith(".md"))


def check_name(name: str) -> None:
    """Raise errors.NotFound unless there is a directive of this name. A path is never a name."""
    if name not in names():
        raise errors.NotFound(f"no directive of this name; there are: {', '.join(names())}")


def read_file(settings: Settings, tenant: str, name: str) -> Directive:
    """Return the operator's file for this tenant, else the one for all tenants, else the built-in one.

    An unreadable or blank file is logged, and the next one is used.
    """
    check_name(name)
    text = _read_operator_file(settings, tenant, name)
    if text:
        return Directive.create(name, text, DirectiveOrigin.FILE)
    built_in = _BUILT_IN.joinpath(f"{name}.md").read_text(encoding="utf-8")
    return Directive.create(name, built_in.strip(), DirectiveOrigin.BUILT_IN)


def _read_operator_file(settings: Settings, tenant: str, name: str) -> str:
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
