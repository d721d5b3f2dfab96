"""Run million-token documents locally: read the whole, answer from the parts that matter, say what was read.

import localctx
with localctx.open("report.pdf") as doc:
    print(doc.ask("What was the net revenue?").text)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from localctx.errors import LocalctxError
from localctx.lazy import lazy_names

if TYPE_CHECKING:
    from localctx.api import LoadedModel, OpenDocument, compare, load_model
    from localctx.api import open as open  # noqa: A004  (the public name is `localctx.open`)
    from localctx.session.answer import Answer
    from localctx.session.compared import Compared

__all__ = [
    "Answer",
    "Compared",
    "LoadedModel",
    "LocalctxError",
    "OpenDocument",
    "__version__",
    "compare",
    "load_model",
    "open",
]

__version__ = "0.1.0"

__getattr__ = lazy_names(
    __name__,
    {
        "Answer": "session.answer",
        "Compared": "session.compared",
        "LoadedModel": "api",
        "OpenDocument": "api",
        "compare": "api",
        "load_model": "api",
        "open": "api",
    },
)
