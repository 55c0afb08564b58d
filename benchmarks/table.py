"""Print tables as Markdown, so that they can be copied into a README."""

from collections.abc import Sequence


def show(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is text, the others are figures."""
    widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
    print(_line(head, widths))
    print(
        "|" + "|".join(f"{'-' * (width + 1)}{'-' if i == 0 else ':'}" for i, width in enumerate(widths)) + "|"
    )
    for row in rows:
        print(_line(row, widths))
    print(flush=True)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.rjust(width) if i else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"
