"""The first words of a value, on one line."""

LENGTH = 120
# Enough of a value to fill a preview, however it is spaced; values may be a megabyte.
_LOOKED_AT = 20 * LENGTH


def preview(value: str) -> str:
    """Return at most 120 characters on one line; a cut ends in `…`."""
    start = value.lstrip()
    text = " ".join(start[:_LOOKED_AT].split())
    if len(text) > LENGTH:
        return text[: LENGTH - 1].rstrip() + "…"
    return text
