"""Questions about all records of the documents, as `ask` answers them: counted, or noted why not."""

from __future__ import annotations

from collections.abc import Sequence

from localctx.session.answer import Answer, RecordCounts
from localctx.session.counting import count
from localctx.session.events import Event, Finished, Text
from localctx.session.provenance import Coverage
from localctx.session.run import Run

__all__ = ["count_events"]


def count_events(run: Run, question: str) -> Sequence[Event]:
    """The answer where the documents' records can be counted or listed by their fields; nothing where not,
    which the run notes if the question is one about all records.
    """
    settings, sought = run.settings, run.sought(question)
    if settings.strategy != "auto" or run.schema is not None or run.blocks is not None:
        return ()
    documents = [reading.document for reading in run.readings]
    counted = count(documents, sought, run.listen)
    if isinstance(counted, str):
        if counted:
            run.note(f"the records were not counted: {counted} (ask by the names of fields)")
        return ()
    run.timings.document_ms += counted.read_ms
    answer = Answer(
        command="ask",
        text=counted.text,
        strategy="count",
        support="supported",
        finish_reason="stop",
        model=run.model.info,
        n_ctx=0,
        requested=settings.requested,
        coverage=Coverage(replaced_characters=sum(one.replaced_characters for one in documents)),
        question=question,
        citations=tuple(counted.citations),
        timings=run.timings,
        warnings=tuple(dict.fromkeys(run.warnings)),
        records=RecordCounts(counted.n_read, counted.n_matched),
    )
    return Text(counted.text), Finished(answer)
