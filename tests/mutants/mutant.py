"""Mutants of a module: the same source with one place changed.

Most come from Cosmic Ray's operators (negated conditions, other comparisons, `and` for `or`, other
numbers), but not in decorators, which guard nothing. Two more break guards as a hurried change would: a
function that answers yes or no always gives one answer, and a check that is called for its exception is
not called.
"""

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from cosmic_ray import plugins
from cosmic_ray.mutating import mutate_code

_OPERATORS = (
    *("AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
    *("ReplaceUnaryOperator_Delete_Not", "NumberReplacer", "ZeroIterationForLoop"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak"),
    *("ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_NotEq_Eq"),
    *("ReplaceComparisonOperator_Lt_LtE", "ReplaceComparisonOperator_LtE_Lt"),
    *("ReplaceComparisonOperator_Gt_GtE", "ReplaceComparisonOperator_GtE_Gt"),
    *("ReplaceComparisonOperator_Lt_GtE", "ReplaceComparisonOperator_Gt_LtE"),
    *("ReplaceComparisonOperator_Is_IsNot", "ReplaceComparisonOperator_IsNot_Is"),
)
_CHECKS = ("check", "require", "ensure", "lock", "raise")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed place: what changed it, and the whole changed source.

    `tests` are those that are to notice it, if they are not all tests of the module. `is_named` is true if
    the list asks for this very change.
    """

    change: str
    source: str
    tests: tuple[str, ...] = ()
    is_named: bool = False

    def difference(self, original: str) -> str:
        """Return the changed lines, those of the original with `-` before them."""
        lines = difflib.unified_diff(original.splitlines(), self.source.splitlines(), n=0, lineterm="")
        return "\n".join(line for line in lines if line[:3] not in {"---", "+++"})

    def changed_lines(self, original: str) -> str:
        """Return the difference without the numbers of its lines, which any other change moves."""
        lines = self.difference(original).splitlines()
        return "\n".join(line for line in lines if not line.startswith("@@"))


def mutants_of(source: str) -> list[Mutant]:
    """Return all mutants of a module's source that can be parsed, each once, in a fixed order."""
    made = [*_by_operators(source), *_by_fixed_answers(source), *_by_dropped_checks(source)]
    found = [mutant for mutant in made if _can_be_parsed(mutant.source)]
    by_source = {mutant.source: mutant for mutant in reversed(found) if mutant.source != source}
    return [mutant for mutant in found if by_source.get(mutant.source) is mutant]


def with_answer(source: str, function: str, answer: str) -> Mutant:
    """Return the mutant in which a function does nothing but return `answer`, an expression.

    Raises LookupError if the module has no such function.
    """
    for node in _functions(source):
        if node.name == function:
            changed = _replace_body(source, node, f"return {answer}")
            return Mutant(f"{function} returns {answer}", changed, is_named=True)
    raise LookupError(f"no function {function}")


def with_change(source: str, old: str, new: str, test: str) -> Mutant:
    """Return the mutant in which `old` is replaced by `new`, which a test is to notice.

    Raises LookupError unless the source has `old` exactly once.
    """
    if source.count(old) != 1:
        raise LookupError(f"{source.count(old)} times in the module: {old}")
    return Mutant("change", source.replace(old, new), (test,))


def _can_be_parsed(source: str) -> bool:
    """Tell whether a test can notice anything but that the module is none: `if not x := f():`."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _by_operators(source: str) -> Iterator[Mutant]:
    for name in _OPERATORS:
        operator = plugins.get_operator(f"core/{name}")()
        occurrence = 0
        while (changed := mutate_code(source, operator, occurrence)) is not None:
            if _without_decorators(changed) != _without_decorators(source):
                yield Mutant(name, changed)
            occurrence += 1


def _without_decorators(source: str) -> list[str]:
    return [line for line in source.splitlines() if not line.lstrip().startswith("@")]


def _by_fixed_answers(source: str) -> Iterator[Mutant]:
    for node in _functions(source):
        if isinstance(node.returns, ast.Name) and node.returns.id == "bool":
            for answer in ("True", "False"):
                yield Mutant(f"{node.name} returns {answer}", _replace_body(source, node, f"return {answer}"))


def _by_dropped_checks(source: str) -> Iterator[Mutant]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and (name := _called_name(node.value)).lstrip("_").startswith(_CHECKS):
            yield Mutant(f"no call of {name}", _replace_lines(source, node, "pass"))


def _functions(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _called_name(expression: ast.expr) -> str:
    call = expression.value if isinstance(expression, ast.Await) else expression
    if not isinstance(call, ast.Call):
        return ""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _replace_body(source: str, node: ast.FunctionDef | ast.AsyncFunctionDef, statement: str) -> str:
    lines = source.splitlines(keepends=True)
    first, last = node.body[0], node.body[-1]
    new_body = f"{' ' * first.col_offset}{statement}\n"
    return "".join([*lines[: first.lineno - 1], new_body, *lines[last.end_lineno or first.lineno :]])


def _replace_lines(source: str, node: ast.stmt, statement: str) -> str:
    lines = source.splitlines(keepends=True)
    new_line = f"{' ' * node.col_offset}{statement}\n"
    return "".join([*lines[: node.lineno - 1], new_line, *lines[node.end_lineno or node.lineno :]])
