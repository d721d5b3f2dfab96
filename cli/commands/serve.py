"""`localctx serve`: an OpenAI-compatible server on a model, until a signal."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from localctx.byte_sizes import parse_bytes
from localctx.errors import LocalctxError, UsageError

from ..options import ParallelOptions, with_options

__all__ = ["need_libraries", "register"]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("serve")(with_options(serve))


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text)


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Where to listen, for whom, and how much at a time."""

    host: Annotated[str, _option("--host", "ADDRESS", "Where to listen.")] = "127.0.0.1"
    port: Annotated[int, _option("--port", "N", "0 takes a free one.")] = 8080
    api_key_file: Annotated[
        str | None, _option("--api-key-file", "FILE", "TOML file of keys and their limits.")
    ] = None
    max_queue: Annotated[int, _option("--max-queue", "N", "Requests that wait; more get 429.")] = 256
    max_body: Annotated[str, _option("--max-body", "SIZE", "Largest JSON body.")] = "8M"
    max_upload: Annotated[str, _option("--max-upload", "SIZE", "Largest document.")] = "512M"
    timeout: Annotated[float, _option("--timeout", "SECONDS", "Longest time of one answer.")] = 600.0
    grace: Annotated[float, _option("--grace", "SECONDS", "Time for running answers at the end.")] = 30.0

    def check(self) -> None:
        """Raises UsageError for numbers that cannot be."""
        for name in ("max_queue", "timeout", "grace"):
            value = getattr(self, name)
            if not 0 < value < 1e9:
                raise UsageError(f"--{name.replace('_', '-')} {value:g} is out of range", "a number above 0")


def serve(run: ParallelOptions, server: ServerOptions) -> None:
    """Serve a model and documents to OpenAI's clients, until Ctrl-C or SIGTERM."""
    need_libraries()
    # Read when llama.cpp is loaded: its threads that wait for each other leave their CPUs to the requests.
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    from localctx.from_settings import choose_model, open_model_for
    from localctx.serve.gate import Limits
    from localctx.serve.keys import KeyRing, read_keys
    from localctx.serve.running import check_address, listen
    from localctx.serve.running import serve as serve_until_signal
    from localctx.serve.service import ServeOptions, Service

    from ..terminal import note

    server.check()
    ring = KeyRing() if server.api_key_file is None else read_keys(Path(server.api_key_file))
    warning = check_address(server.host, has_keys=not ring.is_open, force=run.force)
    limits = Limits(
        max_body_bytes=parse_bytes(server.max_body, "--max-body"),
        max_upload_bytes=parse_bytes(server.max_upload, "--max-upload"),
        answer_s=server.timeout,
    )
    settings, chosen = choose_model(run.flags(), run.config)
    options = ServeOptions.of(settings, server.max_queue, limits)
    with ExitStack() as stack:
        listening = stack.enter_context(closing(listen(server.host, server.port)))
        model = stack.enter_context(closing(open_model_for(settings, chosen, shares_cpus=True)))
        service = Service(model, settings, ring, options)
        if warning is not None:
            note(f"warning: {warning}")
        serve_until_signal(service, listening, server.host, grace_s=server.grace, say=note)


def need_libraries() -> None:
    """Raises LocalctxError where the extra is not installed."""
    for name in ("fastapi", "httptools", "prometheus_client", "python_multipart", "uvicorn"):
        if find_spec(name) is None:
            raise LocalctxError(
                f"localctx serve needs {name}, which is not installed", "pip install 'localctx[serve]'"
            )
