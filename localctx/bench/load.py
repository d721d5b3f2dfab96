"""The server under many users, beside the engine it serves with: tokens a second, latencies, memory.

A server of its own is started with keys of several classes of tenants; before and after, the same prompts run
through one context of the engine, as many side by side as the server has. Knows no terminal.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from localctx.bench.inputs import built_in_text
from localctx.bench.load_clients import Asker, Klass, Traffic, make_askers, prompt_of, run_askers
from localctx.bench.load_documents import DocumentKind, Documents
from localctx.bench.load_report import LoadReport, Rate
from localctx.bench.machine import machine
from localctx.bench.program import ended
from localctx.errors import LocalctxError
from localctx.settings import Settings
from localctx.values import Message, Model, Request, Sampling

__all__ = ["CLASSES", "LoadPlan", "measure"]

CLASSES = (Klass("gold", 4, 1000), Klass("silver", 2, 3000), Klass("bronze", 1, 10_000))
SAMPLE_S = 1.0
LISTENING = re.compile(r"serving (\S+) at (http://\S+)")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """n_users ask for `seconds`, under the keys of n_tenants · n_parallel: answers side by side · max_tokens:
    of one answer · baseline_s: how long the engine alone is measured, before and after · rate: requests a
    second that arrive whatever comes of them; None: each user asks when it has its answer · document_tokens:
    of the documents that are asked about, 0: chats · documents: which of them were seen before.
    """

    n_users: int = 100
    seconds: float = 300.0
    n_tenants: int = 10
    n_parallel: int = 16
    max_tokens: int = 16
    baseline_s: float = 20.0
    rate: float | None = None
    document_tokens: int = 0
    documents: DocumentKind = "mixed"

    @property
    def loop(self) -> str:
        """How requests come, in words."""
        return "closed loop" if self.rate is None else f"open loop, {self.rate:g} requests a second"


def measure(model: Model, settings: Settings, words: Sequence[str], plan: LoadPlan, say: Say) -> LoadReport:
    """`words`: options of `localctx serve` for the same model. Raises LocalctxError if it does not start."""
    askers = make_askers(plan.n_users, plan.n_tenants, CLASSES)
    engine = _engine_rate(model, settings, plan, say)
    with tempfile.TemporaryDirectory(prefix="localctx-load-") as name:
        folder = Path(name)
        keys = folder / "keys.toml"
        keys.write_text(_keys_toml(askers), "utf-8")
        with _serving(words, keys, folder, plan) as (process, served, url), _watching(process) as sizes:
            documents = _documents(model, plan)
            if documents is not None and documents.is_kept:
                say(f"uploading {plan.n_tenants} documents of {plan.document_tokens:,} tokens")
                asyncio.run(documents.prepare(url, served, {one.tenant: one.headers for one in askers}))
            say(f"{plan.n_users} users ask {url} for {plan.seconds:g} s, {plan.loop}")
            traffic = Traffic(served, plan.seconds, plan.max_tokens, plan.rate, documents)
            used_s, own_s = _processor_s(process.pid), time.process_time()
            with asyncio.Runner(loop_factory=_new_loop()) as runner:
                wall_s, n_left = runner.run(run_askers(askers, url, traffic))
            used_s, own_s = _processor_s(process.pid) - used_s, time.process_time() - own_s
    engine += _engine_rate(model, settings, plan, say)
    rate = Rate(sum(one.n_tokens for one in askers), wall_s, used_s)
    return LoadReport(
        plan, tuple(askers), rate, own_s, engine, n_left, tuple(sizes), machine(settings.threads)
    )


def _documents(model: Model, plan: LoadPlan) -> Documents | None:
    """Texts of about as many tokens, by how many the source has."""
    if not plan.document_tokens:
        return None
    source = built_in_text()
    n_characters = plan.document_tokens * len(source) // len(model.tokenize(source, True))
    return Documents(source, n_characters, plan.documents)


def _processor_s(pid: int) -> float:
    """Seconds that a process has used, with the children that it has waited for."""
    import psutil

    return sum(psutil.Process(pid).cpu_times()[:4])


def _new_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The loop that the server has, too: what the users cost is the tool's doing."""
    import uvicorn

    return uvicorn.Config("").get_loop_factory()


# --- the engine alone -----------------------------------------------------------------------------------


def _engine_rate(model: Model, settings: Settings, plan: LoadPlan, say: Say) -> tuple[Rate, ...]:
    """Generated tokens of one context, n_parallel requests side by side, prompts read on the way; nothing
    beside documents, where there is nothing to compare with.
    """
    if plan.document_tokens:
        return ()
    say("measuring the engine alone")
    dice = random.Random(0)  # noqa: S311  # no secret
    n_ctx = min(settings.ctx or 8192, model.usable_n_ctx(settings.ctx, plan.n_parallel))
    context = model.open_context(n_ctx, plan.n_parallel)
    n_tokens, started, used_s = 0, time.monotonic(), time.process_time()
    try:
        while time.monotonic() - started < plan.baseline_s:
            prompts = [
                model.prompt([Message("user", (prompt_of(dice),))]) for _ in range(4 * plan.n_parallel)
            ]
            requests = [Request(prompt, Sampling(max_tokens=plan.max_tokens)) for prompt in prompts]
            for piece in context.generate(requests):
                if piece.finish_reason is not None:
                    n_tokens += piece.n_generated
        return (Rate(n_tokens, time.monotonic() - started, time.process_time() - used_s),)
    finally:
        context.close()


# --- the server -----------------------------------------------------------------------------------------


def _keys_toml(askers: Sequence[Asker]) -> str:
    rows = {one.tenant: one for one in askers}
    return "\n".join(
        f'[[keys]]\nname = "{one.tenant}"\nkey = "{one.key}"\n'
        f"tenant_weight = {one.klass.tenant_weight}\nlatency_slo_ms = {one.klass.latency_slo_ms}\n"
        for one in rows.values()
    )


@contextmanager
def _serving(
    words: Sequence[str], keys: Path, folder: Path, plan: LoadPlan
) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """(process, model's name, URL) of a server that is stopped at the end."""
    code = "from localctx.cli.entry import run; run()"
    fixed = ["--port", "0", "--api-key-file", str(keys), "--store", str(folder / "store")]
    queue = ["--max-queue", str(2 * plan.n_users)]
    environment = {**os.environ, "LOCALCTX_PARALLEL": str(plan.n_parallel)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", *words, *fixed, *queue],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    with process, ExitStack() as stack, ended(process):
        served, url, said = _wait_until_it_listens(process)
        drain = threading.Thread(target=said, daemon=True)
        drain.start()
        stack.callback(drain.join)
        yield process, served, url


def _wait_until_it_listens(process: subprocess.Popen[str]) -> tuple[str, str, Callable[[], None]]:
    """Its model's name and URL, and what reads on what it says. Raises LocalctxError when it ends."""
    lines: list[str] = []
    stream = process.stderr
    if stream is None:
        raise TypeError("no pipe")
    for line in stream:
        lines.append(line.strip())
        if found := LISTENING.search(line):

            def read_on() -> None:
                for _ in stream:
                    pass

            return found[1], found[2], read_on
    raise LocalctxError(f"the server did not start: {' '.join(lines[-3:])}", "localctx serve, by itself")


@contextmanager
def _watching(process: subprocess.Popen[str]) -> Iterator[list[int]]:
    """Resident bytes of the process, once a second."""
    import psutil

    sizes: list[int] = []
    done = threading.Event()

    def watch() -> None:
        seen = psutil.Process(process.pid)
        while not done.wait(SAMPLE_S):
            try:
                sizes.append(seen.memory_info().rss)
            except psutil.Error:
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield sizes
    finally:
        done.set()
        thread.join()
