"""An embedder as condense() wants it: a function from texts to vectors, or why there is none, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from localctx.document.language import language_of_sample
from localctx.engine.embedder import EmbedderFile
from localctx.errors import ModelError
from localctx.index.question_language import question_language
from localctx.session.condense_scores import Embed

__all__ = ["embed_for"]


def embed_for(file: EmbedderFile | str | None, question: str, language: str | None) -> Embed | str | None:
    """Vectors of the question and of passages, each with what the model wants before it; None: nobody asked
    for any. The embedder must cover the question's language and the text's.
    """
    if file is None or isinstance(file, str):
        return file
    asked = question_language(question) or language_of_sample(question)
    for what, spoken in (("the question", asked), ("the document", language)):
        if not file.covers(spoken):
            return (
                f"the embedder {file.name} is made for {', '.join(file.languages)}, {what} is in {spoken!r}"
            )
    try:
        embedder = file.open()
    except ModelError as error:
        return error.message

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        prefixes = (file.query_prefix if text == question else file.passage_prefix for text in texts)
        return embedder.vectors([prefix + text for prefix, text in zip(prefixes, texts, strict=True)])

    return embed
