"""One trace from a caller's span to the passages of an answer; nothing where OpenTelemetry is missing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from serve.serving import Serving

from localctx.serve.tracing import Tracing

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def exported(server: Serving, monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """The spans of the server, in memory."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(server.service.tracing, "_tracer", provider.get_tracer("test"))
    return exporter


def spans_of(exporter: InMemorySpanExporter, request: Callable[[], Any]) -> dict[str, Any]:
    """The spans of the request by name: they are there when its answer is."""
    request()
    trace_id = CALLER.split("-")[1]
    spans = exporter.get_finished_spans()  # another test's last request may have come to its end here too
    return {span.name: span for span in spans if trace.format_trace_id(span.context.trace_id) == trace_id}


def test_a_request_goes_on_with_its_callers_trace(
    server: Serving, exported: InMemorySpanExporter, upload: Callable[..., str]
) -> None:
    documents = {"localctx": {"documents": [upload("The harbour was built in 1871. " * 30)]}}
    messages: list[Any] = [{"role": "user", "content": "When was the harbour built?"}]

    def ask() -> None:
        with server.client() as client:
            client.chat.completions.create(
                model="tiny",
                messages=messages,
                max_tokens=4,
                extra_body=documents,
                extra_headers={"traceparent": CALLER},
            )

    spans = spans_of(exported, ask)
    assert set(spans) == {"chat", "queue", "document", "selection", "assemble", "prefill", "decode"}
    root = spans["chat"]
    assert trace.format_trace_id(root.context.trace_id) == CALLER.split("-")[1]
    assert trace.format_span_id(root.parent.span_id) == CALLER.split("-")[2]
    for name, span in spans.items():
        assert span.context.trace_id == root.context.trace_id
        assert name == "chat" or span.parent.span_id == root.context.span_id
    assert root.attributes["localctx.tenant"] == "alice"
    assert spans["selection"].attributes["localctx.strategy"] == "exact"


def test_a_chat_has_its_steps(server: Serving, exported: InMemorySpanExporter) -> None:
    messages: list[Any] = [{"role": "user", "content": "hello"}]

    def ask() -> None:
        with server.client() as client:
            headers = {"traceparent": CALLER}
            client.chat.completions.create(
                model="tiny", messages=messages, max_tokens=4, extra_headers=headers
            )

    spans = spans_of(exported, ask)
    assert set(spans) == {"chat", "queue", "prefill", "decode"}
    assert spans["chat"].start_time <= spans["prefill"].start_time <= spans["decode"].start_time
    assert spans["chat"].attributes["gen_ai.usage.output_tokens"] == 4


def test_without_the_library_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert not Tracing().is_on
