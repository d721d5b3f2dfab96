"""Is an embedder made for the languages of a question and its documents? Knows no vectors."""

from __future__ import annotations

from collections.abc import Iterable

from localctx.document.language import language_of_sample
from localctx.engine.embedder import EmbedderFile
from localctx.index.question_language import question_language

__all__ = ["why_not_covered"]


def why_not_covered(file: EmbedderFile, question: str | None, languages: Iterable[str | None]) -> str | None:
    """The first language that it does not cover, in words; None where it covers all that are known.

    languages: of the documents. A long question is judged as a document is, a short one by its stop words.
    """
    asked = None if question is None else question_language(question) or language_of_sample(question)
    of_documents = sorted({language for language in languages if language is not None})
    for what, spoken in [("the question", asked), *(("the document", one) for one in of_documents)]:
        if not file.covers(spoken):
            return (
                f"the embedder {file.name} is made for {', '.join(file.languages)}, "
                f"{what} is in {spoken!r} (--embedder names another)"
            )
    return None
