"""The examples of docs/serve.md run as they stand."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
from pathlib import Path

from serve.serving import ALICE, KEYS, PATIENCE_S, Serving

from localctx.serve.keys import read_keys

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"


def blocks(language: str) -> list[str]:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    return found


def test_the_python_examples(server: Serving) -> None:
    runner, said = doctest.DocTestRunner(), list[str]()
    names: dict[str, object] = {"URL": f"{server.url}/v1", "KEY": ALICE}
    for code in blocks("python"):
        test = doctest.DocTestParser().get_doctest(code, names, "serve.md", str(PAGE), 0)
        assert test.examples
        runner.run(test, out=said.append, clear_globs=False)
        names = test.globs
    assert runner.failures == 0, "".join(said)


def test_the_curl_examples(server: Serving, tmp_path: Path) -> None:
    (code,) = blocks("sh")
    (tmp_path / "harbour.txt").write_text("The harbour of Tannau was built in 1871.")
    done = subprocess.run(
        ["bash", "-ec", code],
        cwd=tmp_path,
        env={"URL": f"{server.url}/v1", "KEY": ALICE, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert '"error"' not in done.stdout
    reply, uploaded, listed = re.findall(r"\{.*?\}(?=\{\"|data: )", done.stdout, re.S)[:3]
    assert json.loads(reply)["usage"]["completion_tokens"] == 4
    assert json.loads(uploaded)["id"] in listed
    assert done.stdout.rstrip().endswith("data: [DONE]")


def test_the_key_file(tmp_path: Path) -> None:
    (code,) = blocks("toml")
    path = tmp_path / "keys.toml"
    path.write_text(code)
    (tenant,) = read_keys(path).tenants
    assert (tenant.max_tokens_per_sec, tenant.latency_slo_ms, tenant.tenant_weight) == (200, 300, 4)
    assert "latency_slo_ms" in KEYS
