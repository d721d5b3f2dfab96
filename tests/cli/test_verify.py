"""`localctx verify` keeps what was measured, whatever becomes of the look for retrieval heads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

from localctx.engine import open_model
from localctx.errors import OutOfMemory
from localctx.session.landmarks import HEADS_FACT
from localctx.session.verdicts import VERDICT_FACT
from localctx.store import KVStore
from localctx.verify.gate import Report
from localctx.verify.heads import HeadReport

RECALL = {name: {"asked": [1.0, 1.0], "paraphrased": [0.5, 1.0]} for name in ("words", "landmarks", "both")}
Verify = Callable[..., Any]


@pytest.fixture
def verify(localctx: Verify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verify:
    """Run it on a tiny model with a report that is there already; `heads`: what is found, or raised."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf", bpe_vocabulary())
    with open_model(path) as model:
        report = Report(
            "tiny", model.info.fingerprint, None, ({"name": "int4", "passes": True, "window": None},)
        )
    monkeypatch.setattr("localctx.verify.gate.run_gate", lambda *_: report)
    monkeypatch.setattr("localctx.cli.commands.verify._print", lambda _: None)

    def call(heads: HeadReport | BaseException) -> tuple[Any, dict[str, Any]]:
        def find_heads(*_: object, **__: object) -> HeadReport:
            if isinstance(heads, BaseException):
                raise heads
            return heads

        monkeypatch.setattr("localctx.verify.heads.find_heads", find_heads)
        done = localctx("verify", "--model", str(path), "--store", str(tmp_path / "store"))
        with KVStore.open(tmp_path / "store") as store:
            return done, store.model_facts(report.fingerprint)

    return call


def test_the_verdict_and_the_heads_are_kept(verify: Verify) -> None:
    done, facts = verify(HeadReport(((1, 3), (0, 0)), 40, 12, 30, RECALL))
    assert done.code == 0, done.err
    assert facts[VERDICT_FACT]["stream"]["codec"] == "int4"
    assert facts[HEADS_FACT]["heads"] == [[1, 3], [0, 0]]
    assert "retrieval heads: 1.3 0.0, 40 bytes a token" in done.out


def test_no_heads_leave_those_that_are_known(verify: Verify) -> None:
    done, facts = verify(HeadReport((), 40, 12, 30, RECALL))
    assert done.code == 0, done.err
    assert HEADS_FACT not in facts
    assert "no retrieval heads were found" in done.out
    assert verify(HeadReport(((1, 3),), 20, 12, 30, RECALL))[1][HEADS_FACT]["heads"] == [[1, 3]]
    assert verify(HeadReport((), 40, 12, 30, RECALL))[1][HEADS_FACT]["heads"] == [[1, 3]]


@pytest.mark.parametrize(
    "error", [OutOfMemory("no room for the document"), ValueError("the text is too short")]
)
def test_a_failed_look_for_heads_leaves_the_verdict(verify: Verify, error: Exception) -> None:
    done, facts = verify(error)
    assert done.code == 0, done.err
    assert f"retrieval heads were not looked for: {error}" in done.err
    assert facts[VERDICT_FACT]["stream"]["passes"]
    assert HEADS_FACT not in facts


def test_the_verdict_is_kept_before_heads_are_looked_for(verify: Verify) -> None:
    done, facts = verify(KeyboardInterrupt())
    assert done.code != 0
    assert facts[VERDICT_FACT]["stream"]["passes"]
