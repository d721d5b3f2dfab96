"""The page docs/cli.md and the program say the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from localctx.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
Run = Callable[..., Any]


def all_commands() -> dict[str, Any]:
    """Every command that this version has, by its words, as the parser knows it."""
    found: dict[str, Any] = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]  # a group
        found |= {f"{name} {key}": sub for key, sub in getattr(command, "commands", {}).items()}
        if not hasattr(command, "commands"):
            found[name] = command
    return {name: command for name, command in found.items() if "ater version" not in (command.help or "")}


def options_of(command: Any) -> set[str]:
    """All spellings of a command's options."""
    return {spelling for param in command.params for spelling in param.opts if spelling.startswith("-")} - {
        "-h",
        "--help",
    }


def section(title: str) -> str:
    """The page from a heading to the next one."""
    text = PAGE.read_text("utf-8")
    start = text.index(f"# {title}\n")
    return re.split(r"\n#+ ", text[start + 2 :], maxsplit=1)[0]


def options_in(text: str) -> set[str]:
    """The options that a text of the page names."""
    return set(re.findall(r"`(--?[a-z][a-z-]*)`", text))


def options_on_the_page() -> dict[str, set[str]]:
    """The page's options of each command."""
    shared = {"run options": options_in(section("Run options"))}
    found = {}
    for row in re.findall(r"^\| (`.*?) \| (.*?) \|$", section("Options by command"), re.MULTILINE):
        options = options_in(row[1]).union(*(names for words, names in shared.items() if words in row[1]))
        found |= dict.fromkeys(re.findall(r"`(.*?)`", row[0]), options)
    return found


def test_the_page_lists_exactly_the_options_of_every_command() -> None:
    there = {name: options_of(command) for name, command in all_commands().items()}
    assert options_on_the_page() == there
    assert len(there["summarize"]) > 50


def test_the_page_lists_every_command() -> None:
    text = PAGE.read_text("utf-8")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group
    for name in commands:
        assert re.search(rf"`(?:localctx )?{name}[ `]", text), name


def test_a_wrong_strategy_is_refused_before_anything_is_opened(localctx: Run) -> None:
    for words in (["summarize", "nowhere.txt", "--strategy", "retrieve"],
                  ["ask", "nowhere.txt", "-q", "?", "--strategy", "map-reduce"]):  # fmt: skip
        wrong = localctx(*words)
        assert (wrong.code, f"is not for {words[0]}" in wrong.err) == (2, True)
    compared = localctx("bench", "faithfulness", "--strategy", "stream")
    assert (compared.code, "--strategy" in compared.err) == (2, True)


def test_the_line_of_an_article_works(localctx: Run, tiny_model_path: Path, tmp_path: Path) -> None:
    line = "--ctx-size 4194304 --rope-freq-base 500000.0 --kv-overrides attn_layers=16,cache_type=streaming"
    file = tmp_path / "x.txt"
    file.write_text("The harbour of Tannau was built in 1871 by Anna Feld. " * 20)
    words = ["ask", str(file), "-q", "Who built it?", "-m", str(tiny_model_path), "-n", "4", "--json"]
    result = localctx(*words, *line.split())
    assert result.code == 0, result.err
    model = result.json["model"]
    assert (result.json["strategy"], model["n_ctx"] <= model["n_ctx_train"]) == ("stream", True)
    assert model["rope"] == {"type": "norm", "scaling": "base", "freq_base": 500000.0, "freq_scale": 1.0}
    assert model["requested"] == {"ctx": 4194304, "rope_freq_base": 500000.0}
    warnings = "; ".join(result.json["warnings"])
    assert "where scaled RoPE only costs quality" in warnings
    assert "--kv rank=lexical+landmarks: no retrieval heads of tiny are known" in warnings


def test_llama_cpp_spellings(localctx: Run, tiny_model_path: Path) -> None:
    result = localctx(
        "ask", "x.txt", "-q", "?", "-m", str(tiny_model_path), "-c", "1024", "-ngl", "0", "-t", "2",
        "-ctk", "q8_0", "-ctv", "f16", "-fa", "on",
    )  # fmt: skip
    assert "type_k=q8_0: blocks of 32 values do not divide this model's heads of 16" in result.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["summarise", "x"], "No such command 'summarise'"),
        (["ask", "x", "--questoin", "?"], "No such option"),
        (["ask", "x"], "-q TEXT"),
        (["ask", "x", "-q", "  "], "the question is empty"),
        (["summarize", "x", "--length", "tiny"], "short, medium, long"),
        (["summarize", "x", "--pages", "9-3"], "not a page range"),
        (["summarize", "x", "--strategy", "exct"], "did you mean 'exact'?"),
        (["summarize", "x", "--ctx", "3"], "out of range"),
        (["summarize", "x", "--model", "smollm"], "unknown model"),
        (["ask", "x", "-q", "?", "--model", "../../etc/passwd"], "../../etc/passwd"),
        (["ask", "x", "-q", "?", "--config", "/nowhere.toml"], "cannot read /nowhere.toml"),
        (["store", "export", "x"], "(localctx store export --help)"),
        (["models", "ls", "--bogus"], "(localctx models ls --help)"),
        (["ask", "x", "-q", "?", "--store", __file__], "is no folder (name a folder, or off)"),
        (["store", "ls", "--store", __file__], "test_contract.py is no folder"),
        (["store", "rm", ""], "nothing of '' is stored"),
        (["store", "rm", "a\x1b[31mb"], "nothing of a\\x1b[31mb is stored"),
    ],
)  # fmt: skip
def test_bad_usage_is_one_line(localctx: Run, words: list[str], said: str) -> None:
    result = localctx(*words)
    assert result.code in (1, 2)
    assert said in result.err
    assert result.err.count("\n") == 1
    assert result.out == ""


def test_an_empty_name_is_told_as_such(localctx: Run, tiny_model_path: Path) -> None:
    for words in (
        ["ask", "", "-q", "?", "-m", str(tiny_model_path)],
        ["chunk", "--text", ""],
        ["compare", "", "x"],
    ):
        result = localctx(*words)
        assert (result.code, "a file's name is empty" in result.err, result.err.count("\n")) == (3, True, 1)


def test_errors_as_json(localctx: Run) -> None:
    result = localctx("ask", "x", "-q", "", "--json")
    assert result.code == 2
    assert result.json["schema"] == "localctx.error/1"
    assert result.json["error"]["type"] == "UsageError"
    assert result.err == ""


def test_an_unknown_key_in_the_settings_names_the_nearest(localctx: Run, tmp_path: Path) -> None:
    config = tmp_path / "localctx.toml"
    config.write_text('modle = "x"\n')
    result = localctx("ask", "x", "-q", "?", "--config", str(config))
    assert "unknown setting 'modle'" in result.err
    assert "did you mean 'model'?" in result.err


def test_environment_values_are_typed(localctx: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALCTX_CTX", "many")
    assert "ctx = 'many' in environment is not of type int" in localctx("ask", "x", "-q", "?").err


def test_an_unknown_variable_names_the_nearest(localctx: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALCTX_MODLE", "x")
    result = localctx("ask", "x", "-q", "?")
    assert result.code == 2
    assert "'LOCALCTX_MODLE'; did you mean 'LOCALCTX_MODEL'?" in result.err


@pytest.mark.parametrize("group", [[], ["models"], ["bench"], ["eval"]])
def test_a_bare_group_shows_its_help_as_it_is(localctx: Run, group: list[str]) -> None:
    result = localctx(*group)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"Usage: {' '.join(['localctx', *group])}")
    assert result.err.count("\n") > 8


def test_hints_name_a_command_that_exists(localctx: Run) -> None:
    assert "(localctx --help)" in localctx("--versio").err
    assert "(localctx --help)" in localctx("summarise").err
    assert "(localctx ask --help)" in localctx("ask", "x", "--questoin", "?").err


def test_a_file_or_standard_input_alone_means_chat(localctx: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert "standard input is the document" in localctx("-").err
    assert "unknown model 'nowhere'" in localctx(str(tmp_path / "a.txt"), "--model", "nowhere").err
