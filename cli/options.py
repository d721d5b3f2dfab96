"""Options shared by commands, declared once as dataclasses. Knows no command.

A command takes a whole group as one argument; `with_options` spreads its fields over the command line:

    @with_options
    def ask(files: Files, run: RunOptions, output: OutputOptions) -> None: ...
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from localctx.errors import Interrupted, UsageError

from .attention_options import AttentionOptions
from .device_options import DeviceOptions

__all__ = [
    "ConfigOptions",
    "Files",
    "JsonOptions",
    "LoggedOptions",
    "ModelOptions",
    "OutputOptions",
    "Pages",
    "ParallelOptions",
    "QuietOptions",
    "ReadOptions",
    "ReaderGone",
    "RunOptions",
    "as_words",
    "with_options",
]

Files: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="Files or directories; - is standard input.")
]
Text: TypeAlias = str | None


def _option(*names: str, help: str = "", metavar: str | None = None) -> Any:  # noqa: A002  # named as in Typer
    return typer.Option(*names, help=help, metavar=metavar, show_default=False)


ModelName: TypeAlias = Annotated[
    Text, _option("--model", "-m", help="Model name, GGUF file, or hf:OWNER/REPO[:FILE].")
]
Store: TypeAlias = Annotated[
    Text,
    _option(
        "--store", metavar="DIR|off", help="Where KV and converted documents are kept; off keeps nothing."
    ),
]
StoreLimit: TypeAlias = Annotated[
    Text, _option("--store-limit", metavar="SIZE", help="What the store may take, as 50G.")
]
PasswordFile: TypeAlias = Annotated[
    Text, _option("--password-file", metavar="F", help="File with the PDF password.")
]
Encoding: TypeAlias = Annotated[
    Text, _option("--encoding", metavar="NAME", help="Text encoding, when detection is wrong.")
]
Ocr: TypeAlias = Annotated[
    Text, _option("--ocr", metavar="auto|off", help="Whether scans and images are read (default: auto).")
]
Offline: TypeAlias = Annotated[bool, _option("--offline", help="Never use the network.")]
Config: TypeAlias = Annotated[
    Text, _option("--config", metavar="FILE", help="Settings file instead of localctx.toml.")
]
Pages: TypeAlias = Annotated[
    Text, _option("--pages", metavar="A-B", help="Only these pages of a paged file.")
]
Json: TypeAlias = Annotated[bool, _option("--json", help="One JSON object on standard output.")]
Quiet: TypeAlias = Annotated[bool, _option("--quiet", help="Only the answer and errors.")]


@dataclass(frozen=True, kw_only=True)
class ConfigOptions:
    """Options of every command that has settings. None means: not given here."""

    offline: Offline = False
    config: Config = None

    def flags(self) -> dict[str, object]:
        """The given options as settings; None where not given."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "config"}
        return {name: None if value is False else value for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class ModelOptions(ConfigOptions):
    """Options of a command that looks at a model."""

    model: ModelName = None


@dataclass(frozen=True, kw_only=True)
class ReadOptions(ModelOptions):
    """Options of a command that reads documents with a model's tokenizer alone."""

    store: Store = None
    password_file: PasswordFile = None
    encoding: Encoding = None
    ocr: Ocr = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(DeviceOptions, AttentionOptions, ReadOptions):
    """Options of every command that runs a model."""

    backend: Annotated[
        Text, _option("--backend", metavar="llama|openai:URL[#MODEL]", help="What generates the answers.")
    ] = None
    store_limit: StoreLimit = None
    lora: Annotated[
        list[str] | None,
        _option("--lora", metavar="FILE[:SCALE]", help="LoRA adapter over the model; repeatable."),
    ] = None
    ctx: Annotated[
        int | None, _option("--ctx", "-c", "--ctx-size", help="Context size in tokens (default: as needed).")
    ] = None
    threads: Annotated[int | None, _option("--threads", "-t", help="CPU threads.")] = None
    strategy: Annotated[
        Text,
        _option(
            "--strategy",
            metavar="auto|exact|stream|retrieve|map-reduce|condense",
            help="How the document is read.",
        ),
    ] = None
    temp: Annotated[
        float | None, _option("--temp", "--temperature", help="Sampling temperature; 0 is greedy.")
    ] = None
    top_p: Annotated[float | None, _option("--top-p", help="Nucleus sampling threshold.")] = None
    top_k: Annotated[int | None, _option("--top-k", help="Sample among the K likeliest tokens.")] = None
    min_p: Annotated[float | None, _option("--min-p", help="Least share of the likeliest token's.")] = None
    seed: Annotated[int | None, _option("--seed", "-s", help="Random seed.")] = None
    max_tokens: Annotated[
        int | None, _option("--max-tokens", "-n", "--predict", help="Longest answer, in tokens.")
    ] = None
    kv: Annotated[
        list[str] | None,
        _option(
            "--kv",
            "--kv-overrides",
            metavar="KEY=VALUE,...",
            help="Cache settings (docs/kv.md), as window=2048,codec=int8.",
        ),
    ] = None
    latency: Annotated[
        float | None, _option("--latency", metavar="SECONDS", help="Target for the first token of an answer.")
    ] = None
    embedder: Annotated[
        Text,
        _option(
            "--embedder",
            metavar="NAME|PATH|off",
            help="Embedding model that passages are found by (default: all-minilm-l6-v2).",
        ),
    ] = None
    reranker: Annotated[Text, _option("--reranker", metavar="NAME|PATH", help="Judges them again.")] = None
    schema: Annotated[
        Text,
        _option("--schema", "-j", "--json-schema", metavar="FILE", help="JSON schema that answers fulfil."),
    ] = None
    force: Annotated[bool, _option("--force", help="Go on where localctx would refuse.")] = False

    def flags(self) -> dict[str, object]:
        """The given options as settings; --kv, --lora, --override-kv and --override-tensor may come several
        times, -ctk and -ctv are two of the keys of --kv.
        """
        given = super().flags()
        types = {"type_k": given.pop("cache_type_k"), "type_v": given.pop("cache_type_v")}
        kv = [*(self.kv or ()), *(f"{key}={value}" for key, value in types.items() if value is not None)]
        if "" in (self.override_kv or ()):
            raise UsageError("--override-kv '' is not understood", "--override-kv KEY=TYPE:VALUE")
        if "" in (self.override_tensor or ()):
            raise UsageError("--override-tensor '' is not understood", "--override-tensor RE=DEV")
        if "" in (self.lora or ()):
            raise UsageError("--lora names no file", "--lora FILE or --lora FILE:SCALE")
        several = {"kv": kv, "lora": self.lora, "override_kv": self.override_kv}
        several["override_tensor"] = self.override_tensor
        return {**given, **{name: ",".join(items) if items else None for name, items in several.items()}}


@dataclass(frozen=True, kw_only=True)
class ParallelOptions(RunOptions):
    """Options of a command that has the model answer several requests."""

    parallel: Annotated[
        int | None,
        _option("--parallel", "-np", metavar="N", help="Answers written side by side (default 4)."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LoggedOptions(ParallelOptions):
    """Options of a command whose answers are written to the log of past questions."""

    fresh: Annotated[
        bool, _option("--fresh", help="Answer anew what was asked before; the log keeps the new answer.")
    ] = False
    no_history: Annotated[
        bool, _option("--no-history", help="Neither answer from the log of past questions nor write to it.")
    ] = False

    def flags(self) -> dict[str, object]:
        """The given options as settings."""
        given = super().flags()
        is_without = given.pop("no_history")
        return {**given, "history": False if is_without else None}


@dataclass(frozen=True, kw_only=True)
class JsonOptions:
    """The form of a result."""

    json: Json = False


@dataclass(frozen=True, kw_only=True)
class QuietOptions(JsonOptions):
    """The form of a result, and how much is said beside it."""

    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class OutputOptions(QuietOptions):
    """The form of an answer, and how much is said of how it came about."""

    verbose: Annotated[bool, _option("--verbose", "-v", help="Say more on standard error.")] = False


def as_words(options: Any) -> list[str]:
    """A group of options as a user would type them; what has its default is left out."""
    hints = get_type_hints(type(options), include_extras=True)
    words: list[str] = []
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        option = hints[field.name].__metadata__[0]
        names = (option.default, *option.param_decls)  # Typer holds the first name for a default at first
        spelling = next(name for name in names if isinstance(name, str) and name.startswith("--"))
        if value is True:
            words.append(spelling)
        elif value not in (None, False):
            for one in value if isinstance(value, list) else [value]:
                words += [spelling, str(one)]
    return words


class ReaderGone(Exception):  # no error: the reader of our output has what it wanted
    """Standard output was closed by its reader."""


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is a dataclass of options by the dataclass's fields, as keywords."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        group = groups.get(name)
        if group is None:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            parameters.extend(_field_parameters(group))

    @functools.wraps(command)
    def spread(**values: Any) -> None:
        gathered = {
            name: group(**{f.name: values.pop(f.name) for f in dataclasses.fields(group)})
            for name, group in groups.items()
        }
        try:
            command(**values, **gathered)
        except KeyboardInterrupt:  # Typer would turn these two into bare exit codes
            raise Interrupted("interrupted") from None
        except BrokenPipeError as error:
            raise ReaderGone from error

    del spread.__wrapped__  # Typer would read the original's parameters
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
    spread.__annotations__ = {p.name: p.annotation for p in parameters}
    return spread


@functools.cache
def _field_parameters(group: Any) -> list[inspect.Parameter]:
    """The fields of a dataclass of options as keyword-only parameters."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in dataclasses.fields(group)
    ]
