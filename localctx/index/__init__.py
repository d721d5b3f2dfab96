"""blocks → lexical index, vectors, landmarks; does not know how scores are used.

`LexicalIndex` is BM25 over SQLite FTS5, `kept` brings it to disk; `vectors` and `landmarks` are mapped from
files of their own; `terms` is the one place where text becomes comparable words.
"""

from __future__ import annotations

from localctx.index.lexical import Hits, Indexable, LexicalIndex
from localctx.index.query import exact_phrases, n_words

__all__ = ["Hits", "Indexable", "LexicalIndex", "exact_phrases", "n_words"]
