"""Plans of small models: what they choose is what a run does, and each rung says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from engine.tiny_architectures import write_architecture
from engine.tiny_gguf import TRAINING_TEXT

from localctx.document import Document, open_document
from localctx.engine import EngineOptions, open_model
from localctx.engine.llama import LlamaModel
from localctx.engine.no_alloc import measure
from localctx.engine.shape import shape_of
from localctx.errors import NotComposable, OutOfMemory, UsageError
from localctx.forecast import buffers, calibration, site
from localctx.forecast.buffers import Counted
from localctx.forecast.footprint import GPU_HOST_BYTES
from localctx.forecast.machine import Sizes, cpu_name
from localctx.forecast.plan import Plan, Way
from localctx.forecast.planning import Asked, make_plan
from localctx.forecast.speed import cpu_place
from localctx.session.ask import ask
from localctx.session.events import Finished
from localctx.session.indexing import index_documents
from localctx.session.summarize import summarize
from localctx.settings import Settings


@pytest.fixture
def counted_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers are counted in this process: starting another one takes longer than all of a plan."""
    monkeypatch.setattr(site, "count", lambda wanted: Counted(tuple(measure(wanted))))


@pytest.fixture
def model(tiny_model_path: Path) -> Iterator[LlamaModel]:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as opened:
        yield opened


@pytest.fixture
def text(tmp_path: Path) -> Iterator[Callable[[int], Document]]:
    """A document of so many copies of some prose."""
    opened: list[Document] = []

    def call(times: int) -> Document:
        path = tmp_path / f"{times}.txt"
        path.write_text("".join(f"{i}. {TRAINING_TEXT}" for i in range(times)), "utf-8")
        opened.append(open_document(str(path), cache_dir=None))
        return opened[-1]

    yield call
    for document in opened:
        document.close()


def plan(
    document: Document, model: LlamaModel, folder: Path, *, command: str = "ask", sizes: Sizes | None = None,
    **settings: object,
) -> Plan:  # fmt: skip
    given = {"store": str(folder / "store"), "max_tokens": 16, "threads": 1, **settings}
    asked = Asked(command, sizes or Sizes())
    return make_plan([document], model, Path(model.info.path), Settings(**given), asked)  # type: ignore[arg-type]  # by name


def ways(found: Plan) -> dict[str, Way]:
    return {way.step.rung.name: way for way in found.ways}


def run(document: Document, model: LlamaModel, folder: Path, **settings: object) -> str:
    given = Settings(**{"store": str(folder / "store"), "max_tokens": 16, "threads": 1, **settings})  # type: ignore[arg-type]  # by name
    last = list(ask([document], model, "What came?", given))[-1]
    assert isinstance(last, Finished)
    return last.answer.strategy


@pytest.mark.usefixtures("counted_here")
def test_a_plan_says_what_ask_then_does(
    model: LlamaModel, text: Callable[[int], Document], tmp_path: Path
) -> None:
    for times, kv in ((2, ""), (30, ""), (30, "lazy=on")):
        document = text(times)
        found = plan(document, model, tmp_path, kv=kv)
        assert found.chosen.step.rung.strategy == run(document, model, tmp_path, kv=kv)
    assert ways(plan(text(2), model, tmp_path))["exact-f16"].step.is_chosen


@pytest.mark.usefixtures("counted_here")
def test_a_plan_of_an_indexed_document(
    model: LlamaModel, text: Callable[[int], Document], tmp_path: Path
) -> None:
    document = text(30)
    before = plan(document, model, tmp_path)
    reason = ways(before)["streamed-store"].step.why
    assert before.tokens.stored == 0 and reason.startswith("not indexed: localctx index FILE takes ")
    settings = Settings(store=str(tmp_path / "store"), threads=1, strategy="stream")
    assert list(index_documents([document], model, settings))
    found = plan(document, model, tmp_path)
    assert found.tokens.stored == found.tokens.total > 2048
    assert "has no verdict yet" in ways(found)["streamed-store"].step.why
    forced = plan(document, model, tmp_path, strategy="stream")
    assert forced.chosen.step.rung.name == "streamed-store"
    estimates, unindexed = forced.chosen.estimates, ways(before)["streamed-store"].estimates
    assert estimates is not None and unindexed is not None
    assert estimates.disk_bytes == 0 < unindexed.disk_bytes
    assert estimates.minutes < unindexed.minutes
    assert found.eager_pays_after is None and before.eager_pays_after is not None


@pytest.mark.usefixtures("counted_here")
def test_a_plan_of_a_summary(model: LlamaModel, text: Callable[[int], Document], tmp_path: Path) -> None:
    settings = Settings(store=str(tmp_path / "store"), max_tokens=16, threads=1)
    for times in (2, 12):
        document = text(times)
        found = plan(document, model, tmp_path, command="summarize")
        last = list(summarize([document], model, settings))[-1]
        assert isinstance(last, Finished)
        assert found.chosen.step.rung.strategy == last.answer.strategy
        assert ways(found)["retrieve"].step.why == "not for summarize"
        assert ways(found)["retrieve"].estimates is None
        assert found.chosen.estimates is not None
    with pytest.raises(UsageError, match="not for summarize"):
        plan(document, model, tmp_path, command="summarize", strategy="retrieve")


@pytest.mark.usefixtures("counted_here")
def test_reasons_of_what_does_not_fit(
    model: LlamaModel, text: Callable[[int], Document], tmp_path: Path
) -> None:
    reasons = {name: way.step.why for name, way in ways(plan(text(30), model, tmp_path)).items()}
    assert reasons["exact-f16"].endswith("the model was trained for 2,048")
    assert "beyond the 2,048 tokens" in reasons["exact-q8"]
    assert reasons["lazy-store"] == "only where asked for: --kv lazy=on"
    assert reasons["map-reduce"] == "not for ask"
    assert reasons["condense"] == "not needed: retrieve comes first"
    assert "--rope-scaling auto" in reasons["scaled-rope"] or "times" in reasons["scaled-rope"]
    off = ways(plan(text(30), model, tmp_path, store="off"))
    assert off["streamed-store"].step.why == "the store is off"
    small = ways(plan(text(30), model, tmp_path, sizes=Sizes(disk="1M")))
    assert "the store may take 100.0 kB (--store-limit)" in small["streamed-store"].step.why


@pytest.mark.usefixtures("counted_here")
def test_memory_of_another_machine_limits_the_context(
    model: LlamaModel, text: Callable[[int], Document], tmp_path: Path
) -> None:
    document = text(9)
    here = plan(document, model, tmp_path)
    assert here.chosen.step.rung.name == "exact-f16"
    needed = here.chosen.estimates
    assert needed is not None
    ram = needed.footprint.kv_bytes * 2 // 3 + (18 << 20)
    found = plan(document, model, tmp_path, sizes=Sizes(ram=str(ram)))
    assert found.tokens.limit < found.tokens.needed <= model.info.n_ctx_train
    assert "takes" in ways(found)["exact-f16"].step.why and "memory" in ways(found)["exact-f16"].step.why
    assert ways(found)["scaled-rope"].step.why.startswith("of no use")
    with pytest.raises(OutOfMemory, match="left by --ram"):
        plan(document, model, tmp_path, sizes=Sizes(ram="1M"))
    with pytest.raises(UsageError, match="exact attention does not fit"):
        plan(document, model, tmp_path, sizes=Sizes(ram=str(ram)), strategy="exact")


@pytest.mark.usefixtures("counted_here")
def test_layers_on_a_gpu_that_is_not_here(
    model: LlamaModel, text: Callable[[int], Document], tmp_path: Path
) -> None:
    none = plan(text(2), model, tmp_path, sizes=Sizes(vram="0")).chosen.estimates
    whole = plan(text(2), model, tmp_path, sizes=Sizes(vram="8G"))
    assert none is not None and whole.chosen.estimates is not None
    assert (none.footprint.gpu_layers, none.footprint.vram_bytes) == (0, 0)
    foot = whole.chosen.estimates.footprint
    assert foot.gpu_layers == 3 and foot.vram_bytes > foot.kv_bytes
    assert foot.ram_bytes < none.footprint.ram_bytes + GPU_HOST_BYTES  # its weights and KV are gone
    assert whole.speed.source == "assumed" and whole.to_json()["machine"]["simulated"]
    assert any("all 2 layers on the GPU" in line for line in whole.lines)
    with pytest.raises(UsageError, match="there is no GPU"):
        plan(text(2), model, tmp_path, gpu_layers="all")


@pytest.mark.usefixtures("counted_here")
@pytest.mark.parametrize("architecture", ["lfm2", "mamba", "gemma3", "deepseek2"])
def test_models_that_the_store_refuses(
    architecture: str, text: Callable[[int], Document], tmp_path: Path
) -> None:
    path = write_architecture(tmp_path / "m.gguf", architecture)
    with open_model(path, EngineOptions(n_threads=1)) as model:
        found = plan(text(30), model, tmp_path)
        refused = ways(found)["streamed-store"]
        assert "its KV cannot be stored" in refused.step.why and refused.estimates is None
        assert ways(found)["lazy-store"].estimates is None
        assert found.eager_pays_after is None
        assert not found.model.store and found.model.why_no_store
        assert found.chosen.step.rung.strategy in ("exact", "retrieve")
        assert found.chosen.estimates is not None and found.chosen.estimates.disk_bytes == 0
        with pytest.raises(NotComposable):
            plan(text(30), model, tmp_path, strategy="stream")


@pytest.mark.usefixtures("counted_here")
def test_speeds_that_were_measured_here_are_used(
    model: LlamaModel, text: Callable[[int], Document], tmp_path: Path
) -> None:
    assert plan(text(2), model, tmp_path).speed.source == "uncalibrated"
    own = calibration.Calibration(
        model.info.fingerprint, "tiny", cpu_place(cpu_name(), 1), shape_of(model.header),
        ((64.0, 1000.0), (1024.0, 500.0)),
    )  # fmt: skip
    calibration.keep(tmp_path / "store", own)
    found = plan(text(2), model, tmp_path)
    assert found.speed.source == "calibrated"
    assert found.to_json()["speed"]["prefill_tokens_per_s"] == pytest.approx(1072, rel=0.01)
    assert plan(text(2), model, tmp_path, threads=2).speed.source == "uncalibrated"  # another place


@pytest.mark.usefixtures("counted_here")
def test_speeds_of_another_model_are_scaled(
    model: LlamaModel, text: Callable[[int], Document], tmp_path: Path
) -> None:
    shape = shape_of(model.header)
    like = calibration.Calibration(
        "other", "the other", cpu_place(cpu_name(), 1), shape, ((64.0, 1000.0), (1024.0, 500.0))
    )
    calibration.keep(tmp_path / "store", like)
    found = plan(text(2), model, tmp_path)
    assert (found.speed.source, found.speed.source_model) == ("scaled", "the other")
    assert any("scaled from the other" in line for line in found.lines)


@pytest.mark.usefixtures("counted_here")
def test_json_keys_are_stable(model: LlamaModel, text: Callable[[int], Document], tmp_path: Path) -> None:
    shown = plan(text(30), model, tmp_path).to_json()
    assert list(shown) == [
        "schema", "command", "strategy", "rung", "why", "estimates", "alternatives", "ladder",
        "eager_pays_after", "tokens", "model", "speed", "machine", "warnings",
    ]  # fmt: skip
    assert shown["schema"] == "localctx.plan/1" and shown["strategy"] == "retrieve"
    assert list(shown["estimates"])[:4] == ["minutes", "vram_bytes", "ram_bytes", "disk_bytes"]
    assert len(shown["alternatives"]) == len(shown["ladder"]) - 1
    for other in shown["alternatives"]:
        assert list(other) == ["rung", "strategy", "chosen", "why", "options", "estimates"]
        assert other["why"] and not other["chosen"]
    assert shown["model"]["kv_bytes_per_token"]["f16"] == model.info.kv_bytes_per_token
    assert shown["tokens"]["needed"] > shown["tokens"]["total"] > shown["tokens"]["limit"]


def test_a_child_that_dies_costs_precision_only(
    model: LlamaModel, text: Callable[[int], Document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = plan(text(2), model, tmp_path)
    monkeypatch.setattr(buffers.subprocess, "run", _dead)
    found = plan(text(2), model, tmp_path)
    assert any("estimated from the file's header" in warning for warning in found.warnings)
    assert found.chosen.estimates is not None and counted.chosen.estimates is not None
    least, most = counted.chosen.estimates.footprint, found.chosen.estimates.footprint
    assert least.compute_bytes <= most.compute_bytes <= least.compute_bytes + (25 << 20)


def _dead(*_: object, **__: object) -> object:
    class Done:
        stdout = b""

    return Done()
