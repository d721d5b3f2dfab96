"""The language of a sample, also while the model is still being loaded beside."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from localctx.document import language
from localctx.document.language import language_of_sample, load_early

ENGLISH = "In meeting you again I feel much satisfaction in being able to repeat my congratulations. " * 3
GERMAN = "Die Würde des Menschen ist unantastbar. Sie zu achten ist Verpflichtung aller Gewalt. " * 3


@pytest.mark.parametrize(("sample", "code"), [(ENGLISH, "en"), (GERMAN, "de"), ("1 2 3", None), ("", None)])
def test_language_of_a_sample(sample: str, code: str | None) -> None:
    assert language_of_sample(sample) == code


def test_asked_while_it_is_loaded() -> None:
    code = f"""
from localctx.document.language import language_of_sample, load_early
load_early()
print(language_of_sample({ENGLISH!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "en\n"
    assert done.stderr == ""


def test_what_fails_early_is_raised_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(sample: str) -> str:
        raise OSError("no model")

    monkeypatch.setattr(language, "_classify", broken)
    load_early()  # a traceback of the thread would be an error here
    for thread in threading.enumerate():
        if thread.name == "language model":
            thread.join()
    with pytest.raises(OSError, match="no model"):
        language_of_sample(ENGLISH)
