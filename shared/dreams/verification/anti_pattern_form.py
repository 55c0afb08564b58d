"""The form that an anti-pattern must have."""

import re

from shared.foundation import errors, validation
from shared.memory.longterm.memory import MAX_CONTENT

_WARNING = re.compile(r"(?:don['\u2019]?t|do not|never)\s+(?=\S)", re.IGNORECASE)
_REASON = re.compile(r"\s(?:for|because)\s+(?=\w)", re.IGNORECASE)
_TURN = re.compile(r"(?:[\u2010-\u2015\u2212;,.:]|-{1,3})\s*instead\b[\s,:]*(?=\w)", re.IGNORECASE)


def is_well_formed(content: str) -> bool:
    """Tell whether a text is one storable `Don't X for/because Y — instead Z`, with any dash."""
    try:
        text = validation.check_text(content.strip(), "content", MAX_CONTENT)
    except errors.Invalid:
        return False
    warning, turns = _WARNING.match(text), list(_TURN.finditer(text))
    if warning is None or not turns:
        return False
    return _REASON.search(text, warning.end() + 1, turns[-1].start()) is not None
