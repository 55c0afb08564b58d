"""Tell from an element's own style whether a browser shows its text.

An element is gone with all that is in it if it is not displayed, quite transparent, clipped, scaled or pushed
away. What a text inherits can be taken back by an element below: mails set `font-size:0` around parts that
have a size of their own. Of several values of a property any that hides counts, because a browser passes
over those that it does not understand. Computed values (`var()`, sums in `calc()`) are not known.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

_NOTHING = frozenset[str]()
_SEEN_PX = 1
"""What is no larger than this can't be read: pages hide with one pixel as often as with none."""
_SEEN_OPACITY = 0.05
_FAR_PX = 999
"""What is pushed as far as this to the left or up is outside the window."""
_MAX_VALUE_CHARACTERS = 1000
_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?(?:\*/|$))|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|\\.|[^\\/"'();]+|.""", re.DOTALL
)
_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.IGNORECASE | re.DOTALL)
_IMPORTANT = re.compile(r"\s*!\s*important$")
_CALC = re.compile(r"calc\( ?([^() ]+) ?\)")
_NUMBER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)(%|[a-z]*)")
_FUNCTION = re.compile(r"\b([a-z0-9-]+)\(([^()]*)\)")
_SEPARATOR = re.compile(r"[\s,/]+")
_RELATIVE_TO_PARENT = re.compile(r"[\d.](?:em|%|ex|ch)$")
_PX = {
    **dict.fromkeys(("", "px"), 1.0),
    **dict.fromkeys(("em", "rem", "pc"), 16.0),
    **dict.fromkeys(("ex", "ch"), 8.0),
    **dict.fromkeys(("%", "vw", "vh", "vmin", "vmax"), 10.0),  # of a window of 1 000 pixels
    **dict(zip(("pt", "in", "cm", "mm", "q"), (4 / 3, 96.0, 37.8, 3.78, 0.945), strict=True)),
}
_SAME_AS_PARENT = frozenset(
    {"inherit", "unset", "revert", "revert-layer", "currentcolor", "larger", "smaller"}
)
_SIDES = ("left", "top", "right", "bottom")
_SIZES = ("height", "width", "max-height", "max-width")
_ROOM = ("padding", "padding-top", "padding-bottom", "min-height", "min-width", "flex", "flex-grow")
_Values = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class InlineStyle:
    """What an element's own style does to its text.

    `is_gone` and `is_squeezed` are about all that is in the element; the latter can't be if it is a cell of a
    table, which is as large as its text. `hiding` and `showing` are the inherited properties that hide text,
    or show it again.
    """

    is_gone: bool = False
    is_squeezed: bool = False
    hiding: frozenset[str] = _NOTHING
    showing: frozenset[str] = _NOTHING


@lru_cache(maxsize=1024)
def read_style(attribute: str) -> InlineStyle:
    """Return what the value of a `style` attribute does."""
    values: dict[str, list[str]] = {}
    for declaration in _declarations(attribute):
        name, colon, value = declaration.partition(":")
        if not colon:
            continue
        values.setdefault(_plain(name), []).append(_IMPORTANT.sub("", _plain(value)))
    hiding, showing = set[str](), set[str]()
    for name, hides in _inherited(values):
        (hiding if hides else showing).add(name)
    return InlineStyle(
        _is_gone(values), _is_squeezed(values), frozenset(hiding), frozenset(showing) - frozenset(hiding)
    )


def _declarations(attribute: str) -> Iterator[str]:
    """Yield the declarations: they end at a semicolon that stands in no text and no brackets."""
    parts: list[str] = []
    depth = 0
    for token in _TOKEN.finditer(attribute):
        part = " " if token["comment"] else token[0]
        depth += (part == "(") - (part == ")" and depth > 0)
        if part == ";" and not depth:
            yield "".join(parts)
            parts = []
        else:
            parts.append(part)
    yield "".join(parts)


def _plain(text: str) -> str:
    """Return a name or a value in lower case, without escapes, needless space and a `calc` of one number."""
    plain = " ".join(_ESCAPE.sub(_unescaped, text).split()).lower()[:_MAX_VALUE_CHARACTERS]
    return _CALC.sub(r"\1", plain)


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[2]
    code = int(escape[1], 16)
    return chr(code) if 0 < code <= 0x10FFFF else "\ufffd"


def _is_gone(values: _Values) -> bool:
    one_of = {"display": "none", "content-visibility": "hidden"}
    return (
        any(value in values.get(name, ()) for name, value in one_of.items())
        or any(_is_transparent(value) for value in values.get("opacity", ()))
        or any(_number(value) == 0 for name in ("zoom", "scale") for value in _words(values, name))
        or any(_makes_nothing(*call) for name in ("transform", "filter") for call in _calls(values, name))
        or any(_clips_all(*call) for name in ("clip-path", "clip") for call in _calls(values, name))
        or _is_far_away(values)
    )


def _is_far_away(values: _Values) -> bool:
    is_positioned = not {"absolute", "fixed", "relative", "sticky"}.isdisjoint(values.get("position", ()))
    names = ("margin-left", "margin-top", "translate", *(_SIDES if is_positioned else ()))
    return any(_is_far(word) for name in names for word in _words(values, name))


def _is_squeezed(values: _Values) -> bool:
    """Return whether a box has no size, no room besides, and hides what is larger than itself."""
    overflow = {word for name in ("overflow", "overflow-x", "overflow-y") for word in _words(values, name)}
    lengths = [_px(word) for name in _SIZES for word in _words(values, name)]
    room = [_px(word) for name in _ROOM for word in _words(values, name)]
    is_small = any(length is not None and 0 <= length <= _SEEN_PX for length in lengths)
    return is_small and not overflow.isdisjoint({"hidden", "clip"}) and not any(px and px >= 1 for px in room)


def _inherited(values: _Values) -> Iterator[tuple[str, bool]]:
    """Yield the inherited properties that are set, and whether text with them can't be seen."""
    for value in values.get("visibility", ()):
        if value in {"hidden", "collapse", "visible", "initial"}:
            yield "visibility", value in {"hidden", "collapse"}
    for value in (*values.get("font-size", ()), *_sizes_of_fonts(values)):
        if _is_tiny(value):
            yield "font-size", True
        elif value not in _SAME_AS_PARENT and not _RELATIVE_TO_PARENT.search(value):
            yield "font-size", False
    for name in ("color", "-webkit-text-fill-color"):
        for value in values.get(name, ()):
            if value not in _SAME_AS_PARENT:
                yield name, _has_no_colour(value) and not _shows_background(values)
    for value in values.get("text-indent", ()):
        yield "text-indent", _is_far(value)


def _sizes_of_fonts(values: _Values) -> Iterator[str]:
    """Yield the sizes in values of `font`: a number of one to a thousand without a unit is a weight."""
    for value in values.get("font", ()):
        words = (word for word in _SEPARATOR.split(value) if _px(word) is not None)
        yield from [word for word in words if not word[-1].isdigit() or _px(word) == 0][:1]


def _is_tiny(size: str) -> bool:
    """Return whether letters of a size can't be read; a share is one of the usual size."""
    px = _px(size)
    share = _PX["em"] / 100 / _PX["%"] if size.endswith("%") else 1
    return px is not None and 0 <= px * share <= _SEEN_PX


def _shows_background(values: _Values) -> bool:
    """Return whether letters are holes through which their background is seen."""
    names = ("background-clip", "-webkit-background-clip", "background")
    return any("text" in _words(values, name) for name in names)


def _has_no_colour(value: str) -> bool:
    if value.startswith("#"):
        alpha = {5: value[4:], 9: value[7:]}.get(len(value), "f")
        return not alpha.strip("0")
    calls = [(name, _SEPARATOR.split(arguments.strip())) for name, arguments in _FUNCTION.findall(value)]
    is_clear = any(len(words) == 4 and _is_transparent(words[3]) for _, words in calls)
    return is_clear or value == "transparent"


def _is_transparent(value: str) -> bool:
    number = _number(value)
    return number is not None and number / (100 if value.endswith("%") else 1) < _SEEN_OPACITY


def _makes_nothing(name: str, words: Sequence[str]) -> bool:
    """Return whether a function of `transform` or `filter` leaves nothing to be seen."""
    numbers = [_number(word) for word in words]
    if name.startswith("scale"):
        return 0 in numbers
    if name == "matrix":
        a, b, c, d = ([number or 0 for number in numbers] + [0] * 4)[:4]
        return a * d == b * c
    if name.startswith("translate"):
        return any(map(_is_far, words))
    return name == "opacity" and _is_transparent(words[0])


def _clips_all(name: str, words: Sequence[str]) -> bool:
    """Return whether a shape of `clip` or `clip-path` has no area."""
    lengths = [_px(word) for word in words]
    if name == "polygon":
        return len({tuple(words[start : start + 2]) for start in range(0, len(words), 2)}) < 3
    if name in {"circle", "ellipse"}:
        return 0 in lengths[: words.index("at") if "at" in words else None]
    if name == "inset":
        return _insets_meet(words)
    if name != "rect" or len(lengths) != 4 or None in lengths:
        return False
    top, right, bottom, left = (length or 0 for length in lengths)
    return bottom - top <= _SEEN_PX or right - left <= _SEEN_PX


def _insets_meet(words: Sequence[str]) -> bool:
    """Return whether the shares that are cut off at two opposite sides are all; lengths count as none."""
    words = words[: words.index("round") if "round" in words else None]
    sides = [(_number(word) or 0) if word.endswith("%") else 0 for word in words]
    if not 1 <= len(sides) <= 4:
        return False
    # Two are those of top and right, which the other two repeat; a fourth that is missing is the second.
    top, right, bottom, left = [*sides, sides[1]] if len(sides) == 3 else (sides * 4)[:4]
    return top + bottom >= 100 or right + left >= 100


def _is_far(value: str) -> bool:
    px = _px(value)
    return px is not None and px <= -_FAR_PX


def _calls(values: _Values, name: str) -> Iterator[tuple[str, list[str]]]:
    for value in values.get(name, ()):
        for function, arguments in _FUNCTION.findall(value):
            yield function, _SEPARATOR.split(arguments.strip())


def _words(values: _Values, name: str) -> list[str]:
    return [word for value in values.get(name, ()) for word in value.split()]


def _number(value: str) -> float | None:
    match = _NUMBER.fullmatch(value)
    return float(match[1]) if match else None


def _px(value: str) -> float | None:
    """Return about how many pixels a length has, or None if it is none."""
    match = _NUMBER.fullmatch(value)
    if match is None:
        return None
    number = float(match[1])
    return number * _PX[match[2]] if match[2] in _PX else 0.0 if number == 0 else None
