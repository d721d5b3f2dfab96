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
        raise ImportError("no model")

    monkeypatch.setattr(language, "_classify", broken)
    load_early()  # a traceback of the thread would be an error here
    for thread in threading.enumerate():
        if thread.name == "language model":
            thread.join()
    with pytest.raises(ImportError, match="no model"):
        language_of_sample(ENGLISH)


def test_a_full_disk_leaves_the_language_open() -> None:
    """The library unpacks its model in a temporary file."""
    code = (
        "import resource; from localctx.document.language import language_of_sample as of\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
        "text = 'The mine was opened in the year 1742 by the king and his many servants. ' * 3\n"
        "print(of(text))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "print(of(text))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "en"]
