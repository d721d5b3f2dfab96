"""Runs a template from an untrusted file: no code, no files, bounded time, bounded memory. Knows no messages.

jinja's immutable sandbox keeps templates from reaching Python; this adds limits. Every output, loop step,
call, filter, operator and comparison passes a check of the clock and of the size it could produce, before
it is produced. Nothing here can stop one C call in the middle, so none is let in that could take long.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import lru_cache, update_wrapper
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.exceptions import SecurityError
from jinja2.exceptions import TemplateError as JinjaError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_context
from jinja2.visitor import NodeTransformer

from localctx.engine.template import NO_RETRY, TemplateError

__all__ = ["render_text"]

_DEADLINE_S = 2.0
_MAX_TEMPLATE_CHARS = 1 << 18
_MAX_CHARS = 1 << 20  # of output, and of any one string on the way
_MAX_ITEMS = 100_000  # of any one list, as the sandbox's range(); also the largest number a filter takes
_MAX_BITS = 4096
_MAX_EXPONENT = 128
_MAX_MESSAGE_CHARS = 200
_CHARS_PER_ITEM = 16

_STR_METHODS = frozenset(
    """capitalize casefold center count endswith find format index isalnum isalpha isascii isdecimal isdigit
    islower isnumeric isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix
    replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title upper
    zfill""".split()
)
_METHODS: tuple[tuple[type, frozenset[str]], ...] = (
    (str, _STR_METHODS),
    (dict, frozenset({"get", "items", "keys", "values"})),
    (list, frozenset({"count", "index"})),
    (tuple, frozenset({"count", "index"})),
    (int, frozenset()),
    (float, frozenset({"is_integer"})),
    (bytes, frozenset()),
)
_FILTERS = frozenset(
    """abs batch capitalize count d default dictsort first float groupby int items last length list lower map
    max min reject rejectattr reverse round select selectattr slice sort title trim truncate unique upper
    wordcount""".split()
)
_COMPARING = frozenset("dictsort groupby max min sort unique".split())
_WIDTH = re.compile(r"[0-9]{4,}|\*|:[^}]*\{")


class _Budget:
    """What is left of one rendering: time, and characters of output."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.deadline = time.monotonic() + _DEADLINE_S
        self.chars_left = _MAX_CHARS

    def tick(self) -> None:
        if time.monotonic() > self.deadline:
            raise TemplateError(f"the chat template did not finish within {_DEADLINE_S:g} s", NO_RETRY)

    def spend(self, n_chars: int) -> None:
        self.tick()
        self.chars_left -= n_chars
        if self.chars_left < 0:
            raise _too_large(f"more than {_MAX_CHARS:,} characters of output")


def _too_large(what: str) -> TemplateError:
    return TemplateError(f"the chat template makes {what}", NO_RETRY)


def _check_chars(n_chars: int) -> None:
    if n_chars > _MAX_CHARS:
        raise _too_large(f"a text of {n_chars:,} characters")


def _weigh(value: Any) -> int:
    """Items in a value, nested ones each time they occur; refuses more than a comparison should walk.

    A list that holds one list twice, thirty levels deep, is small in memory and endless to print.
    """
    if isinstance(value, str | int | float | None | Undefined):
        return 1 + len(value) // _CHARS_PER_ITEM if isinstance(value, str) else 1
    weight, open_values = 0, [value]
    while open_values:
        item = open_values.pop()
        weight += 1
        if isinstance(item, str):
            weight += len(item) // _CHARS_PER_ITEM
        elif isinstance(item, dict):
            open_values += item.keys()
            open_values += item.values()
        elif isinstance(item, list | tuple | set | frozenset):
            open_values += item
        if weight + len(open_values) > _MAX_ITEMS:
            raise _too_large(f"a value of more than {_MAX_ITEMS:,} items")
    return weight


def _text(value: Any) -> str:
    """The value as jinja prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | None | Undefined):
        return str(value)
    _weigh(value)
    if isinstance(value, dict | list | tuple | set | frozenset | range):
        return str(value)
    raise _too_large(f"text of a {type(value).__name__}")


# --- guarded operators and methods ------------------------------------------------------------------


def _multiply(left: Any, right: Any) -> Any:
    for sequence, times in ((left, right), (right, left)):
        if isinstance(sequence, str):
            _check_chars(len(sequence) * int(times))
        elif isinstance(sequence, list | tuple) and len(sequence) * int(times) > _MAX_ITEMS:
            raise _too_large("a list that is too long")
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > _MAX_BITS:
        raise _too_large("a number that is too large")
    return left * right


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        _check_chars(len(left) + len(right))
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        if len(left) + len(right) > _MAX_ITEMS:
            raise _too_large("a list that is too long")
    return left + right


def _power(left: Any, right: Any) -> Any:
    if abs(right) > _MAX_EXPONENT or (isinstance(left, int) and left.bit_length() > _MAX_EXPONENT):
        raise _too_large("a number that is too large")
    return left**right


def _modulo(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        _check_format(left, "%", [right])
    return left % right


def _check_format(template: str, sign: str, arguments: Iterable[Any]) -> None:
    """Refuses wide or computed field widths, and fields times argument sizes beyond the cap."""
    if _WIDTH.search(template):
        raise _too_large("a wide or computed field")
    size = sum(_weigh(argument) for argument in arguments) * _CHARS_PER_ITEM
    _check_chars(len(template) + template.count(sign) * size)


def _join(separator: Any, values: Iterable[Any]) -> str:
    texts = [_text(value) for _, value in zip(range(_MAX_ITEMS + 1), values, strict=False)]
    if len(texts) > _MAX_ITEMS:
        raise _too_large("a list that is too long")
    separator = _text(separator)
    _check_chars(sum(map(len, texts)) + len(separator) * len(texts))
    return str(separator).join(texts)


def _replace(text: Any, old: Any, new: Any, count: Any = None) -> str:
    text, old, new = _text(text), _text(old), _text(new)
    limit = -1 if count is None else int(count)
    n = text.count(old) if limit < 0 else min(limit, text.count(old))
    _check_chars(len(text) + n * len(new))
    return str(text).replace(old, new, limit)


def _call_method(owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a built-in value, sizes checked first."""
    for value in (owner, *args, *kwargs.values()):
        _weigh(value)
    if isinstance(owner, str):
        if name == "join":
            return _join(owner, *args)
        if name == "replace":
            return _replace(owner, *args)
        if name in ("center", "ljust", "rjust", "zfill"):
            _check_chars(int(args[0]) if args else 0)
        elif name == "format":
            _check_format(owner, "{", (*args, *kwargs.values()))
            return None  # the sandbox's own wrapper runs it
    return getattr(owner, name)(*args, **kwargs)


# --- filters ----------------------------------------------------------------------------------------


def _to_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, **options: Any) -> str:
    _weigh(value)
    known = {name: options[name] for name in ("separators", "sort_keys") if name in options}
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **known)


def _indent(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    text, margin = _text(text), width if isinstance(width, str) else " " * width
    lines = text.splitlines(keepends=True)
    _check_chars(len(text) + len(lines) * len(margin))
    return "".join(
        line if (i == 0 and not first) or (not blank and not line.strip()) else margin + line
        for i, line in enumerate(lines)
    )


def _format(template: Any, *args: Any, **kwargs: Any) -> Any:
    return _modulo(_text(template), kwargs or args)


def _sum(values: Iterable[Any], attribute: Any = None, start: float = 0) -> float:
    if attribute is not None:
        raise TemplateError("the chat template uses sum(attribute=…), which is not supported")
    total = start
    for value in values:
        if not isinstance(value, int | float):
            raise _too_large("a sum of things that are no numbers")
        total += value
    return total


_OWN_FILTERS: dict[str, Callable[..., Any]] = {
    "e": lambda value: _replace_html(_text(value)),
    "escape": lambda value: _replace_html(_text(value)),
    "format": _format,
    "indent": _indent,
    "join": lambda values, d="", attribute=None: _join(d, _attributes(values, attribute)),
    "replace": _replace,
    "safe": lambda value: value,
    "string": _text,
    "sum": _sum,
    "tojson": _to_json,
}


def _replace_html(text: str) -> str:
    from html import escape

    return escape(text)


def _attributes(values: Iterable[Any], name: str | None) -> Iterable[Any]:
    return values if name is None else [value.get(name, "") for value in values]


# --- the environment --------------------------------------------------------------------------------


class _Rewriter(NodeTransformer):
    """Puts a check round whatever repeats, prints, joins or compares."""

    def __init__(self, budget: _Budget) -> None:
        self._budget = budget

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        self._budget.tick()
        return super().generic_visit(node, *args, **kwargs)

    def _wrapped(self, node: nodes.Expr, name: str) -> nodes.Filter:
        return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = self._wrapped(node.iter, "_each")  # type: ignore[arg-type]  # any expression may stand here
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return self._wrapped(nodes.List(node.nodes, lineno=node.lineno), "_concat")

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = self._wrapped(node.expr, "_weighed")
        for operand in node.ops:
            operand.expr = self._wrapped(operand.expr, "_weighed")
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.key, nodes.Const):
            node.key = self._wrapped(node.key, "_weighed")
        return node

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:
        return nodes.Const(node.data, lineno=node.lineno)  # so that finalize counts it too

    def _refuse(self, node: nodes.Node) -> nodes.Node:
        raise TemplateError(f"the chat template uses {type(node).__name__.lower()}, which is not allowed", NO_RETRY)

    visit_Include = visit_Import = visit_FromImport = visit_Extends = _refuse


class _Generation(Extension):
    """{% generation %}…{% endgeneration %}: a mark for training that prints its body."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox with limits. One rendering at a time."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, budget: _Budget) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
            optimized=False,
            extensions=[loopcontrols, _Generation],
        )
        self.budget = budget
        self.finalize = pass_context(lambda context, value: self._print(value))
        self.binop_table.update({"+": _add, "*": _multiply, "**": _power, "%": _modulo})
        inner = {name: self.filters[name] for name in _FILTERS}
        self.filters = {name: self._checked(name, call) for name, call in {**inner, **_OWN_FILTERS}.items()}
        self.filters |= {"_each": self._each, "_concat": lambda values: _join("", values), "_weighed": _weighed}
        self.tests = {name: self._checked("sort", test) for name, test in self.tests.items()}
        for name in ("lipsum", "cycler"):
            del self.globals[name]
        self.globals["raise_exception"] = _raise
        self.now: datetime | None = None
        self.globals["strftime_now"] = self._strftime_now
        self.code_generator_class = type("_Generator", (_TickingGenerator,), {"budget": budget})

    def _print(self, value: Any) -> str:
        text = _text(value)
        self.budget.spend(len(text))
        return text

    def _each(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.budget.tick()
            yield value

    def _checked(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The filter or test, behind the clock and limits on what it is given."""

        def checked(*args: Any, **kwargs: Any) -> Any:
            self.budget.tick()
            for value in (*args, *kwargs.values()):
                if isinstance(value, int) and abs(value) > _MAX_ITEMS and args and value is not args[0]:
                    raise _too_large(f"{name}({value})")
                if name in _COMPARING:
                    _weigh(value)
            return call(*args, **kwargs)

        return update_wrapper(checked, call)

    def _strftime_now(self, layout: str) -> str:
        if len(layout) > _MAX_MESSAGE_CHARS or re.search(r"%[^A-Za-z%]*[0-9]", layout):
            raise _too_large("a wide date")
        return (self.now or datetime.now()).strftime(layout)  # noqa: DTZ005  # local time, as the model's makers

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        for kind, names in _METHODS:
            if isinstance(obj, kind):
                return attr in names
        return super().is_safe_attribute(obj, attr, value)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(argument, tuple):
            _weigh(argument)
        return super().getitem(obj, argument)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  # as jinja
        __self.budget.tick()
        method = getattr(__obj, "__wrapped__", __obj)  # the sandbox wraps str.format
        owner = getattr(method, "__self__", None)
        if any(isinstance(owner, kind) for kind, _ in _METHODS):
            name = method.__name__
            if not __self.is_safe_attribute(owner, name, method):
                raise SecurityError(f"{name} is not allowed")
            result = _call_method(owner, name, args, kwargs)
            if name != "format":
                return result
        return super().call(__context, __obj, *args, **kwargs)


class _TickingGenerator(CodeGenerator):
    """jinja's code generator behind the clock."""

    budget: _Budget

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        self.budget.tick()
        return super().visit(node, *args, **kwargs)


def _weighed(value: Any) -> Any:
    _weigh(value)
    return value


def _raise(message: Any) -> None:
    raise TemplateError(f"the chat template refuses the messages: {_one_line(_text(message))}")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_MAX_MESSAGE_CHARS]


class _Program:
    """A compiled template and the lock that its budget needs."""

    def __init__(self, source: str) -> None:
        self.lock = threading.Lock()
        self.budget = _Budget()
        self.environment = _Environment(self.budget)
        tree = _Rewriter(self.budget).visit(self.environment.parse(source))
        code = self.environment.compile(tree)
        self._template = self.environment.template_class.from_code(self.environment, code, dict(self.environment.globals))

    def run(self, context: dict[str, Any], now: datetime | None) -> str:
        with self.lock:
            self.budget.start()
            self.environment.now = now
            return self._template.render(context)


@lru_cache(maxsize=8)
def _compiled(source: str) -> _Program:
    return _Program(source)


def render_text(source: str, context: dict[str, Any], now: datetime | None = None) -> str:
    """The template's output. Raises TemplateError, one line, for whatever goes wrong in it."""
    if len(source) > _MAX_TEMPLATE_CHARS:
        raise TemplateError(f"the chat template has {len(source):,} characters", NO_RETRY)
    try:
        return _compiled(source).run(context, now)
    except TemplateError:
        raise
    except SecurityError as error:
        raise TemplateError(f"the chat template is unsafe: {_one_line(str(error))}", NO_RETRY) from error
    except JinjaError as error:
        raise TemplateError(f"the chat template fails: {_one_line(str(error))}") from error
    except Exception as error:  # noqa: BLE001  # any exception is the template's doing, and it is reported
        what = _one_line(f"{type(error).__name__}: {error}")
        raise TemplateError(f"the chat template fails: {what}", NO_RETRY) from error
