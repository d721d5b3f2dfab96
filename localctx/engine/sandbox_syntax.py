"""Puts checks of time and size into a template before it is compiled. Knows syntax trees, no values."""

from __future__ import annotations

import time
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.visitor import NodeTransformer

from localctx.engine.sandbox_limits import MAX_CHARS, NO_RETRY, TemplateError, too_large

__all__ = ["DEADLINE_S", "Budget", "Rewriter", "TickingGenerator"]

DEADLINE_S = 2.0
"""Seconds for one rendering, all forms of the messages together."""


class Budget:
    """What is left of one rendering: time, and characters of output."""

    def __init__(self) -> None:
        self.start(time.monotonic() + DEADLINE_S)

    def start(self, deadline: float) -> None:
        self.deadline = deadline
        self.chars_left = MAX_CHARS

    def tick(self) -> None:
        if time.monotonic() > self.deadline:
            raise TemplateError(f"the chat template did not finish within {DEADLINE_S:g} s", NO_RETRY)

    def spend(self, n_chars: int) -> None:
        self.tick()
        self.chars_left -= n_chars
        if self.chars_left < 0:
            raise too_large(f"more than {MAX_CHARS:,} characters of output")


class Rewriter(NodeTransformer):
    """Puts a check round whatever repeats, prints, joins or compares."""

    def __init__(self, budget: Budget) -> None:
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

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):  # compiled to Python's own slicing, which copies
            node.node = self._wrapped(node.node, "_charged")
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.key, nodes.Const):
            node.key = self._wrapped(node.key, "_weighed")
        return node

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:
        return nodes.Const(node.data, lineno=node.lineno)  # so that finalize counts it too

    def _refuse(self, node: nodes.Node) -> nodes.Node:
        raise TemplateError(
            f"the chat template uses {type(node).__name__.lower()}, which is not allowed", NO_RETRY
        )

    visit_Include = visit_Import = visit_FromImport = visit_Extends = _refuse


class TickingGenerator(CodeGenerator):
    """jinja's code generator behind the clock."""

    budget: Budget

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        self.budget.tick()
        return super().visit(node, *args, **kwargs)
