"""Run million-token documents locally: read the whole, answer from the parts that matter, say what was read.

import localctx
with localctx.open("report.pdf") as doc:
    print(doc.ask("What was the net revenue?").text)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from localctx.errors import LocalctxError

if TYPE_CHECKING:
    from localctx.api import OpenDocument, open  # noqa: A004  (the public name is `localctx.open`)
    from localctx.session.answer import Answer

__all__ = ["Answer", "LocalctxError", "OpenDocument", "__version__", "open"]

__version__ = "0.1.0"

_HOMES = {"Answer": "localctx.session.answer", "OpenDocument": "localctx.api", "open": "localctx.api"}


def __getattr__(name: str) -> Any:
    """Load the public names on first use, so that `import localctx` stays light (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'localctx' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home), name)
