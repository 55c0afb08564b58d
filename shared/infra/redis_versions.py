"""How a Lua script compares the stored version with the condition of a write (`foundation.versions`)."""

from shared.foundation.versions import Expected

# `stored` is a version in digits, or '0' if nothing is stored; `expected` is what `version_list` returns.
MEETS_CONDITION = """
local function meets_condition(stored, expected)
  local function is_named(version) return string.find(expected, ',' .. version .. ',', 1, true) end
  return expected == '' or is_named(stored) or (stored ~= '0' and is_named('-1'))
end
"""


def version_list(expected: Expected | None) -> str:
    """Return a condition as an argument of a script; an empty text is no condition."""
    return "" if expected is None else f",{','.join(map(str, expected))},"
