"""Refuse to start a worker that could do nothing, or would do everything in vain.

Celery starts a worker although its initialisation fails, and such a worker looks alive. So its settings and
the files that they name are checked before.
"""

from pathlib import Path

from shared.foundation import errors
from shared.foundation.config import Settings
from shared.platform.spend import price_lists

MAX_PART_OF_LEASE = 0.8
"""Work is cancelled after this part of a lease, because another worker may claim it at its end."""


def require_usable(settings: Settings) -> None:
    """Raise errors.Misconfigured, naming the setting, if a worker can't work with these settings."""
    price_lists.listed_prices(settings)
    _require_readable(settings.directives_dir)
    _require_shorter(settings, "document_parse_seconds", "job_lease")
    if settings.llm_base_url is not None:
        _require_shorter(settings, "llm_timeout", "job_lease")
        _require_shorter(settings, "llm_timeout", "dream_lease")
    if settings.judge_base_url is not None or settings.judge_model is not None:
        _require_shorter(settings, "judge_timeout", "job_lease")
        _require_shorter(settings, "judge_timeout", "dream_lease")
    if settings.embedding_base_url is not None:
        _require_shorter(settings, "embedding_timeout", "job_lease")


def _require_readable(folder: Path | None) -> None:
    try:
        paths = [] if folder is None else [*folder.glob("*.md"), *folder.glob("*/*.md"), *folder.iterdir()]
        for path in paths:
            if path.suffix == ".md":
                path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"can't be read: {type(error).__name__}"
        raise errors.Misconfigured(f"LOCI_DIRECTIVES_DIR {folder}: {reason}") from None


def _require_shorter(settings: Settings, timeout: str, lease: str) -> None:
    """Require that a time limit that somebody has set ends before the lease of the work."""
    seconds, limit = getattr(settings, timeout), MAX_PART_OF_LEASE * getattr(settings, lease)
    if timeout in settings.model_fields_set and seconds > limit:
        rule = f"must be at most {limit:g}, which is {MAX_PART_OF_LEASE} of LOCI_{lease.upper()}"
        raise errors.Misconfigured(
            f"LOCI_{timeout.upper()} is {seconds:g} and {rule}: what takes longer would be done in vain"
        )
