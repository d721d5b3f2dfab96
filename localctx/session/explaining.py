"""Differences → a sentence each, by the model from both passages. A sentence stays only where it holds.

It is dropped where it names a number, name, quotation or code that neither passage holds, where neither
supports it (`selection`), where it does not name what both sides have alone, or tells the change the wrong
way round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from localctx.alignment.words import words_of
from localctx.document import Document
from localctx.index.terms import content_words, fold, stem
from localctx.selection import judgement, unsupported
from localctx.session.compared import Compared, ComparedDifference
from localctx.session.decoding import decode_many
from localctx.session.events import Listener, Progress, ignore_progress
from localctx.session.prompts import difference_task, document_messages
from localctx.session.run import start
from localctx.settings import Settings
from localctx.values import FinishReason, Message, Model, Request

__all__ = ["explain", "holds"]

EXPLAINED = ("reworded", "number", "date", "party", "added", "removed")
MAX_TOKENS = 80
PASSAGE_CHARACTERS = 1600
"""Of a passage that is shown to the model; the comparison itself is of the whole."""
N_SEQ = 4
HELD_SHARE = 0.6
"""Share of its content words that the passages hold, beside those of the frame."""
FRAME = "old new version passage contract say says said state states instead changed replaced"


def explain(
    compared: Compared,
    documents: Sequence[Document],
    model: Model,
    settings: Settings,
    listen: Listener = ignore_progress,
) -> Compared:
    """The comparison with a checked sentence at every difference that the model could tell. Raises what the
    model raises; a cancelled run leaves the rest without.
    """
    wanted = [k for k, one in enumerate(compared.differences) if one.kind in EXPLAINED]
    if not wanted:
        return replace(compared, model=model.info)
    n_seq = min(settings.parallel or N_SEQ, len(wanted))
    run = start(documents, model, settings, listen, n_seq)
    requests = [
        run.request(_messages(compared.differences[k]), min(MAX_TOKENS, settings.max_tokens)) for k in wanted
    ]
    context = run.context(n_seq * _longest(requests), n_seq)
    differences = list(compared.differences)
    n_dropped = n_done = 0
    try:
        for done in decode_many(context, requests, run.timings, run.started):
            n_done += 1
            listen(Progress("explaining", n_done, len(wanted), "differences"))
            place = wanted[done.index]
            text = " ".join(done.text.split())
            if holds(text, differences[place], done.finish_reason, run.language):
                differences[place] = replace(differences[place], explanation=text)
            elif done.finish_reason != "cancelled":
                n_dropped += 1
    finally:
        context.close()
    timings = {**compared.timings, "decode_ms": run.timings.decode_ms}
    warnings = tuple(dict.fromkeys((*compared.warnings, *run.warnings)))
    return replace(
        compared,
        differences=tuple(differences),
        model=model.info,
        explanations_dropped=n_dropped,
        timings=timings,
        warnings=warnings,
    )


def holds(text: str, difference: ComparedDifference, finish_reason: FinishReason, language: str) -> bool:
    """Whether a sentence about a difference may be shown."""
    passages = list(_passages(difference))
    if not text or finish_reason != "stop" or unsupported(text, "\n".join(passages)):
        return False
    if judgement("", text, passages, language=language).verdict == "none":
        return False
    said = _stems(text) - _stems(FRAME)
    if len(said & _stems("\n".join(passages))) < HELD_SHARE * len(said) or not said:
        return False
    if len(passages) == 2 and not _tells_both(text, *passages):
        return False
    return not any(_is_reversed(fold(text), fold(a), fold(b)) for a, b in difference.changes if a and b)


def _tells_both(text: str, before: str, after: str) -> bool:
    """Whether the sentence has a word of either side that the other side lacks, where there is one, and says
    of neither version what only the other one has.
    """
    words, old, new = (frozenset(words_of(one).texts) for one in (text, before, after))
    if not all(words & only for only in (old - new, new - old) if only):
        return False
    of_old, mark, of_new = text.casefold().partition("new version")
    if not mark or "old version" not in of_old:
        return True
    said_old, said_new = (frozenset(words_of(part).texts) for part in (of_old, of_new))
    return not (said_old & (new - old) or said_new & (old - new))


def _is_reversed(text: str, before: str, after: str) -> bool:
    """Whether the sentence names what is only after the change first, then what is only before it."""
    old, new = before.split(), after.split()
    firsts = [
        min((at for word in ours if word not in theirs and (at := text.find(word)) >= 0), default=-1)
        for ours, theirs in ((old, new), (new, old))
    ]
    return 0 <= firsts[1] < firsts[0]


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, content_words(text)))


def _passages(difference: ComparedDifference) -> Iterator[str]:
    for side in (difference.a, difference.b):
        if side is not None:
            yield " ".join(side.quote.split())


def _messages(difference: ComparedDifference) -> list[Message]:
    before, after = (
        None if side is None else " ".join(side.quote.split())[:PASSAGE_CHARACTERS]
        for side in (difference.a, difference.b)
    )
    return document_messages(*difference_task(before, after))


def _longest(requests: Sequence[Request]) -> int:
    return max(len(request.prompt.tokens) + request.sampling.max_tokens for request in requests) + 8
