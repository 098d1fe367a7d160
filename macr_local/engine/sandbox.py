"""Jinja for chat templates that nobody vouches for: no Python objects, and an end to every rendering.

Jinja's sandbox keeps a template from Python's insides but not from running forever: nested loops, strings
that double, a filter that pads to a billion characters. Here every step of a rendering costs units of a
budget, in proportion to the data it touches, and what could be large in one step is refused before it is
made. The count depends on the template and the messages alone, so a template is stopped on every machine or
on none.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

STEPS = 1_000_000
"""Units one rendering may cost. The most costly of the 70 that llama.cpp collects takes 31,000."""
AT_ONCE = 1 << 15
"""Characters and elements one filter or method may be given; it makes the square of half of it at worst."""

_HANDED_IN = (Context, nodes.EvalContext, jinja2.Environment)
_UNUSED_FILTERS = ("random", "striptags", "urlize", "xmlattr")
"""One would make prompts differ from run to run; the others are for web pages, and slow on odd input."""
_STEP = "+step"
"""The payment's name among the filters: one that no template can write."""
_WIDE = re.compile(r"\d{5,}")
_spent: ContextVar[list[int]] = ContextVar("spent")


class OverBudget(Exception):
    """A template asked for more work than any chat template needs."""


@contextmanager
def budget() -> Iterator[None]:
    """Compiling and rendering happen inside one of these; nothing else may."""
    token = _spent.set([0])
    try:
        yield
    finally:
        _spent.reset(token)


def _spend(units: int) -> None:
    spent = _spent.get()
    spent[0] += units
    if spent[0] > STEPS:
        raise OverBudget(f"it takes more than {STEPS:,} steps")


def _size(value: object) -> int:
    return len(value) if isinstance(value, (str, bytes, list, tuple, dict, set, range)) else 0


def _reach(value: object, depth: int = 2) -> int:
    """How much a value can make a result grow: its length, or a number that may be a width or a count."""
    if isinstance(value, int):
        return abs(value)
    if depth and isinstance(value, (list, tuple)):
        return len(value) + sum(_reach(item, depth - 1) for item in value)
    return _size(value)


def _admit(*values: object) -> None:
    if sum(map(_reach, values)) > AT_ONCE:
        raise OverBudget(f"one step handles more than {AT_ONCE:,} characters or elements")


def _admit_format(text: object) -> None:
    if isinstance(text, str) and _WIDE.search(text):
        raise OverBudget("a format asks for a width of five digits or more")


@jinja2.pass_context
def _step(_: Context, value: Any, units: int = 1) -> Any:
    """Pay for a value in passing. It takes the context so that the compiler cannot fold it away."""
    _spend(units + _size(value))
    return value


def _priced(function: Callable[..., Any], formats: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def priced(*args: Any, **kwargs: Any) -> Any:
        given = [arg for arg in (*args, *kwargs.values()) if not isinstance(arg, _HANDED_IN)]
        # A number that is filtered is no width; one that is an argument may be.
        _admit(*(given[1:] if given and isinstance(given[0], int) else given))
        if formats:
            _admit_format(given[0])
        _spend(1 + sum(map(_size, given)))
        result = function(*args, **kwargs)
        _spend(_size(result))
        return result

    return priced


class _Meter(NodeTransformer):
    """Puts a payment wherever a template repeats work or makes data that no call or filter makes."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        text = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_paid(nodes.Const(None), 1 + text)))
        if node.test is not None:
            node.test = nodes.And(_paid(nodes.Const(True)), node.test)
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Output:
        self.generic_visit(node)
        node.nodes = [
            child if isinstance(child, nodes.TemplateData) else _paid(child) for child in node.nodes
        ]
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:
        self.generic_visit(node)
        return _paid(node)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:
        self.generic_visit(node)
        return _paid(node) if isinstance(node.arg, nodes.Slice) else node

    def visit_Test(self, node: nodes.Test) -> nodes.Test:
        self.generic_visit(node)
        node.node = _paid(node.node)
        node.args = [_paid(arg) for arg in node.args]
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        self.generic_visit(node)
        node.expr = _paid(node.expr)
        for operand in node.ops:
            operand.expr = _paid(operand.expr)
        return node


def _paid(node: nodes.Expr, units: int = 1) -> nodes.Filter:
    paid = nodes.Filter(node, _STEP, [nodes.Const(units)], [], None, None)
    paid.set_lineno(getattr(node, "lineno", None) or 1)
    return paid


class _Generation(jinja2.ext.Extension):
    """``{% generation %}``, by which training code finds the answer, means nothing here."""

    tags = {"generation"}  # noqa: RUF012 - Jinja declares it so

    def parse(self, parser: Parser) -> list[nodes.Node]:
        parser.stream.skip(1)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """The environment chat templates are written for (that of transformers), sandboxed and bounded."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
        )
        self.filters["tojson"] = _to_json
        for name in _UNUSED_FILTERS:
            del self.filters[name]
        for name, function in self.filters.items():
            self.filters[name] = _priced(function, formats=name == "format")
        self.filters[_STEP] = _step
        del self.globals["lipsum"]
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_now

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        _Meter().visit(tree)
        return tree

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function, a method or a macro for the template, against payment."""
        receiver = getattr(obj, "__self__", None)
        if isinstance(receiver, (str, bytes, list, tuple, dict)):
            _admit(receiver, *args, *kwargs.values())
        _spend(1 + _size(receiver) + sum(map(_size, args)) + sum(map(_size, kwargs.values())))
        result = super().call(context, obj, *args, **kwargs)
        _spend(_size(result))
        return result

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Bound ``str.format``, which Jinja replaces by a safe one where a template reaches for it."""
        safe = super().wrap_str_format(value)
        if safe is None:
            return None

        def bounded(*args: Any, **kwargs: Any) -> str:
            _admit(value.__self__, *args, *kwargs.values())
            _admit_format(value.__self__)
            return safe(*args, **kwargs)

        return functools.update_wrapper(bounded, value)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute ``left operator right`` for the template, against payment."""
        if isinstance(left, int) and isinstance(right, int):
            _admit(_growth(operator, left, right))
        elif operator == "*":
            _admit(_reach(left) * _reach(right))
        elif operator == "%" and isinstance(left, str):
            _admit(left, right)
            _admit_format(left)
        result = super().call_binop(context, operator, left, right)
        _spend(1 + _size(result))
        return result


def _growth(operator: str, left: int, right: int) -> int:
    """Bits the result of two integers may have."""
    return left.bit_length() * abs(right) if operator == "**" else left.bit_length() + right.bit_length()


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as transformers writes it for templates: not escaped for HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    _admit_format(pattern)
    return datetime.now().strftime(pattern)
