"""`eval honesty` as a command of its own group."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from localctx.cli.commands.eval_honesty import add_honesty
from localctx.errors import UsageError


def group() -> typer.Typer:
    app = typer.Typer()
    add_honesty(app)
    return app


def test_an_unknown_split_is_a_usage_error() -> None:
    result = CliRunner().invoke(group(), ["--split", "train"])
    assert isinstance(result.exception, UsageError)
    assert "--split train" in str(result.exception)


@pytest.mark.slow
def test_json_has_every_rate() -> None:
    result = CliRunner().invoke(group(), ["--documents", "1", "--json"])
    value = json.loads(result.stdout)
    assert value["schema"] == "localctx.eval.honesty/1"
    assert value["rates"]["false supported"]["of"] > 500
    assert {row["gold"] for row in value["rows"]} == {"supported", "partial", "none"}
