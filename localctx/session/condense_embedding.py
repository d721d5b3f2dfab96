"""An embedder as condense() wants it: a function from texts to vectors, or why there is none, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from localctx.blocks import Embed
from localctx.engine.embedder import EmbedderFile
from localctx.errors import ModelError
from localctx.session.embedder_languages import why_not_covered

__all__ = ["embed_for"]


def embed_for(file: EmbedderFile | str | None, question: str, language: str | None) -> Embed | str | None:
    """Vectors of the question and of passages, each with what the model wants before it; None: nobody asked
    for any. The embedder must cover the question's language and the text's.
    """
    if file is None or isinstance(file, str):
        return file
    if reason := why_not_covered(file, question, [language]):
        return reason
    try:
        embedder = file.open()
    except ModelError as error:
        return error.message

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        prefixes = (file.query_prefix if text == question else file.passage_prefix for text in texts)
        return embedder.vectors([prefix + text for prefix, text in zip(prefixes, texts, strict=True)])

    return embed
