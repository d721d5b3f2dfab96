"""Fixtures of the document tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from localctx.document import Document, Limits, open_document
from localctx.errors import LocalctxError

Open: TypeAlias = Callable[..., Document]


def facts(document: Document) -> tuple[object, ...]:
    """All that a reader sees of a document."""
    return (
        *(document.read(0, document.text.n_code_points), document.content_hash, document.format),
        *(document.pages, document.sections, document.warnings, document.encoding, document.code_language),
    )


@pytest.fixture
def open_bytes(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Opens bytes as a file of the given name: without a cache, with a new one, and out of that one.

    All three must show the same document, or fail with the same error. Scans are not read: tests/document/
    test_ocr.py does that.
    """
    cache = tmp_path_factory.mktemp("cache")
    with ExitStack() as stack:

        def opened(data: bytes, name: str = "file.txt", **options: Any) -> Document:
            path = tmp_path / name
            path.write_bytes(data)
            options = {"limits": Limits(ocr=False), **options}
            try:
                document = stack.enter_context(open_document(path, **{"cache_dir": None, **options}))
            except LocalctxError as error:
                with pytest.raises(type(error)) as again:
                    open_document(path, **{"cache_dir": cache, **options})
                assert (again.value.message, again.value.hint) == (error.message, error.hint)
                raise
            for _ in range(2):
                with open_document(path, **{"cache_dir": cache, **options}) as kept:
                    assert facts(kept) == facts(document)
            return document

        yield opened
