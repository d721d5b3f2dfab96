"""What clients send: OpenAI's parameters. What would change an answer and is not there is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

__all__ = ["MAX_TEXTS", "ChatBody", "ChatMessage", "DocumentsField", "EmbeddingsBody", "Text"]

MAX_TEXTS = 2048
"""Texts of one embeddings request, as OpenAI has it."""
MAX_CHOICES = 8


def _whole(text: str) -> str:
    """Text that can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is no text") from None
    return text


Text = Annotated[str, AfterValidator(_whole)]

StopText = Annotated[Text, Field(min_length=1)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class TextPart(_Body):
    """A part of a message; images and sound are refused by name."""

    type: Literal["text"]
    text: Text


class ChatMessage(_Body):
    """One turn. Fields that replies have and that say nothing here may come back empty."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Text | list[TextPart] | None = None
    name: Text | None = None
    refusal: Text | None = None
    reasoning_content: Text | None = None
    annotations: list[Any] | None = Field(None, max_length=0)
    audio: None = None
    function_call: None = None
    tool_calls: list[Any] | None = Field(None, max_length=0)

    @property
    def text(self) -> str:
        """All parts joined."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "".join(part.text for part in self.content)


class StreamOptions(_Body):
    """include_usage: a last chunk with the tokens of the request."""

    include_usage: bool = False
    include_obfuscation: bool = False


class DocumentsField(_Body):
    """Documents that the last user message is a question on.

    documents: ids of uploaded files · strategy: as the option of this name.
    """

    documents: list[Text] = Field(min_length=1, max_length=64)
    strategy: Literal["auto", "exact", "stream", "retrieve", "condense"] | None = None


class ChatBody(_Body):
    """/v1/chat/completions."""

    model: Text
    messages: list[ChatMessage] = Field(min_length=1, max_length=4096)
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, ge=1, le=1 << 24)
    max_completion_tokens: int | None = Field(None, ge=1, le=1 << 24)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    top_k: int | None = Field(None, ge=0, le=1 << 30)
    min_p: float | None = Field(None, ge=0, le=1)
    n: int | None = Field(None, ge=1, le=MAX_CHOICES)
    seed: int | None = Field(None, ge=-(1 << 63), lt=1 << 63)
    stop: StopText | Annotated[list[StopText], Field(max_length=4)] | None = None
    response_format: dict[str, Any] | None = None
    localctx: DocumentsField | None = None
    # Those that have an effect which is not there: refused unless they ask for nothing (chat.py).
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    logit_bias: dict[str, float] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)
    tools: list[Any] | None = None
    tool_choice: Text | dict[str, Any] | None = None
    functions: list[Any] | None = None
    function_call: Text | dict[str, Any] | None = None
    modalities: list[Text] | None = None
    audio: dict[str, Any] | None = None
    prediction: dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None
    # Those that change nothing in an answer: taken and not looked at.
    user: Text | None = None
    metadata: dict[str, Any] | None = None
    store: bool | None = None
    service_tier: Text | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: Text | None = None
    verbosity: Text | None = None
    prompt_cache_key: Text | None = None
    prompt_cache_retention: Text | None = None
    safety_identifier: Text | None = None


class EmbeddingsBody(_Body):
    """/v1/embeddings."""

    model: Text
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1)
    user: Text | None = None

    @property
    def texts(self) -> list[str]:
        """All of them."""
        return [self.input] if isinstance(self.input, str) else self.input
