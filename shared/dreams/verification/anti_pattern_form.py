"""The form that an anti-pattern must have: `Don't X for/because Y — instead Z`."""

import re

from shared.foundation import errors, validation
from shared.memory.longterm.memory import MAX_CONTENT

_WARNING = re.compile(r"(?:don['\u2019]?t|do not|never)\s+(?=\S)", re.IGNORECASE)
_REASON = re.compile(r"\s(?:for|because)\s+(?=\w)", re.IGNORECASE)
_ALTERNATIVE = re.compile(r"(?:[\u2010-\u2015\u2212;,.:]|-{1,3})\s*instead\b[\s,:]*(?=\w)", re.IGNORECASE)


def is_well_formed(content: str) -> bool:
    """Tell whether a text has the form and can be stored. The dash may be any dash or punctuation mark."""
    try:
        text = validation.check_text(content.strip(), "content", MAX_CONTENT)
    except errors.Invalid:
        return False
    warning, alternatives = _WARNING.match(text), list(_ALTERNATIVE.finditer(text))
    if warning is None or not alternatives:
        return False
    return _REASON.search(text, warning.end() + 1, alternatives[-1].start()) is not None
