"""Runs a template from an untrusted file: no code, no files, bounded time, bounded memory. Knows no messages.

jinja's immutable sandbox keeps templates from reaching Python; this adds limits. Every output, loop step,
call, filter, operator and comparison passes a check of the clock and of the size it could produce, before
it is produced. Nothing here can stop one C call in the middle, so none is let in that could take long.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import lru_cache, update_wrapper
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.exceptions import TemplateError as JinjaError
from jinja2.ext import Extension, loopcontrols
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_context

from localctx.engine.sandbox_filters import OWN_FILTERS
from localctx.engine.sandbox_limits import (
    BINARY_OPERATORS,
    MAX_ITEMS,
    NO_RETRY,
    TemplateError,
    call_method,
    charge,
    join,
    start_allowance,
    text_of,
    too_large,
    weigh,
)
from localctx.engine.sandbox_syntax import DEADLINE_S, Budget, Rewriter, TickingGenerator

__all__ = ["DEADLINE_S", "render_text"]

_MAX_TEMPLATE_CHARS = 1 << 18
_MAX_MESSAGE_CHARS = 200


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STR_METHODS = _names(
    """capitalize casefold center count endswith find format index isalnum isalpha isascii isdecimal isdigit
    islower isnumeric isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix
    replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title upper
    zfill"""
)
_METHODS: tuple[tuple[type, frozenset[str]], ...] = (
    (str, _STR_METHODS),
    (dict, _names("get items keys values")),
    (list, _names("count index")),
    (tuple, _names("count index")),
    (int, _names("")),
    (float, _names("is_integer")),
    (bytes, _names("")),
)
_FILTERS = _names(
    """abs batch capitalize count d default dictsort first float groupby items last length lower map
    max min reject rejectattr reverse round select selectattr slice sort title truncate unique upper
    wordcount"""
)
_COMPARING = _names("dictsort groupby max min sort unique")


class _Generation(Extension):
    """{% generation %}…{% endgeneration %}: a mark for training that prints its body."""

    tags = {"generation"}  # noqa: RUF012  # as jinja declares it

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """The clock runs while the template is read, too."""
        environment = self.environment
        for token in stream:
            if isinstance(environment, _Environment):
                environment.budget.tick()
            yield token

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox with limits. One rendering at a time."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, budget: Budget) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
            optimized=False,
            extensions=[loopcontrols, _Generation],
        )
        self.budget = budget
        self.finalize = pass_context(lambda context, value: self._print(value))
        self.binop_table.update(BINARY_OPERATORS)
        inner = {name: self.filters[name] for name in _FILTERS}
        self.filters = {name: self._checked(name, call) for name, call in {**inner, **OWN_FILTERS}.items()}
        self.filters |= {
            "_each": self._each,
            "_charged": _charged,
            "_concat": lambda values: join("", values),
            "_weighed": _weighed,
        }
        tests: dict[str, Any] = {**self.tests}
        self.tests = {name: self._checked("sort", test) for name, test in tests.items()}
        for name in ("lipsum", "cycler"):
            del self.globals[name]
        self.globals["raise_exception"] = _raise
        self.now: datetime | None = None
        self.globals["strftime_now"] = self._strftime_now
        self.code_generator_class = type("_Generator", (TickingGenerator,), {"budget": budget})

    def _print(self, value: Any) -> str:
        text = text_of(value)
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
                charge(value)
                if isinstance(value, int) and abs(value) > MAX_ITEMS and args and value is not args[0]:
                    raise too_large(f"{name}({value})")
                if name in _COMPARING:
                    weigh(value)
            return call(*args, **kwargs)

        return update_wrapper(checked, call)

    def _strftime_now(self, layout: str) -> str:
        if len(layout) > _MAX_MESSAGE_CHARS or re.search(r"%[^A-Za-z%]*[0-9]", layout):
            raise too_large("a wide date")
        return (self.now or datetime.now()).strftime(layout)  # local time, as the model's makers

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        for kind, names in _METHODS:
            if isinstance(obj, kind):
                return attr in names
        return super().is_safe_attribute(obj, attr, value)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(argument, tuple):
            weigh(argument)
        return super().getitem(obj, argument)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # as jinja
        __self.budget.tick()
        if not isinstance(__obj, Macro):
            for value in (*args, *kwargs.values()):
                weigh(value)
        method = getattr(__obj, "__wrapped__", __obj)  # the sandbox wraps str.format
        owner = getattr(method, "__self__", None)
        if any(isinstance(owner, kind) for kind, _ in _METHODS):
            name = method.__name__
            if not __self.is_safe_attribute(owner, name, method):
                raise SecurityError(f"{name} is not allowed")
            own = {key: value for key, value in kwargs.items() if key not in ("_loop_vars", "_block_vars")}
            result = call_method(owner, name, args, own)  # jinja passes those two to every call
            if name != "format":
                return result
        return super().call(__context, __obj, *args, **kwargs)


def _charged(value: Any) -> Any:
    charge(value)
    return value


def _weighed(value: Any) -> Any:
    weigh(value)
    return value


def _raise(message: Any) -> None:
    raise TemplateError(f"the chat template refuses the messages: {_one_line(text_of(message))}")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_MAX_MESSAGE_CHARS]


class _Program:
    """A compiled template and the lock that its budget needs."""

    def __init__(self, source: str) -> None:
        self.lock = threading.Lock()
        self.budget = Budget()
        self.environment = _Environment(self.budget)
        tree = Rewriter(self.budget).visit(self.environment.parse(source))
        code = self.environment.compile(tree)
        self._template = self.environment.template_class.from_code(
            self.environment, code, dict(self.environment.globals)
        )

    def run(self, context: dict[str, Any], deadline: float, now: datetime | None) -> str:
        with self.lock:
            self.budget.start(deadline)
            start_allowance()
            self.environment.now = now
            return self._template.render(context)


@lru_cache(maxsize=8)
def _compiled(source: str) -> _Program:
    return _Program(source)


def render_text(source: str, context: dict[str, Any], deadline: float, now: datetime | None = None) -> str:
    """The template's output before time.monotonic() is `deadline` (compiling it, once, has its own).

    Raises TemplateError, one line, for whatever goes wrong in it.
    """
    if len(source) > _MAX_TEMPLATE_CHARS:
        raise TemplateError(f"the chat template has {len(source):,} characters", NO_RETRY)
    try:
        return _compiled(source).run(context, deadline, now)
    except TemplateError:
        raise
    except SecurityError as error:
        raise TemplateError(f"the chat template is unsafe: {_one_line(str(error))}", NO_RETRY) from error
    except JinjaError as error:
        raise TemplateError(f"the chat template fails: {_one_line(str(error))}") from error
    except Exception as error:  # any exception is the template's doing, and it is reported
        what = _one_line(f"{type(error).__name__}: {error}")
        hint = NO_RETRY if isinstance(error, RecursionError | MemoryError) else ""
        raise TemplateError(f"the chat template fails: {what}", hint) from error
