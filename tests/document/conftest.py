"""Fixtures of the document tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from localctx.document import Document, open_document

Open: TypeAlias = Callable[..., Document]


@pytest.fixture
def open_bytes(tmp_path: Path) -> Iterator[Open]:
    """Opens bytes as a file of the given name, without a cache unless one is named."""
    with ExitStack() as stack:

        def opened(data: bytes, name: str = "file.txt", **options: Any) -> Document:
            path = tmp_path / name
            path.write_bytes(data)
            return stack.enter_context(open_document(path, **{"cache_dir": None, **options}))

        yield opened
