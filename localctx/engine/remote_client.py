"""Chat completions of any OpenAI-compatible server: one request, its pieces; every failure is one clear line.

What may pass by itself (429, 5xx before the first piece, a connection that is lost then) is tried again a few
times. Knows no documents and no tokens but those that the server counts.
"""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from localctx.errors import BackendError, UsageError

if TYPE_CHECKING:
    import httpx2

__all__ = ["Delta", "RemoteClient", "parse_backend"]

CONNECT_S, SILENCE_S = 10.0, 300.0
PAUSES_S = (1.0, 2.0, 4.0)
"""Between attempts, where the server names no time of its own."""
LONGEST_PAUSE_S = 30.0
MAX_SAID = 300
KEY_VARIABLE = "OPENAI_API_KEY"
DATA, DONE = "data:", "[DONE]"


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer. Counts come with the last one, where the server tells them."""

    text: str = ""
    thinking: str = ""
    finish_reason: str | None = None
    n_prompt: int | None = None
    n_cached: int = 0
    n_generated: int | None = None


def parse_backend(backend: str) -> tuple[str, str | None]:
    """(base URL ending in /v1 or as given, model or None) of openai:URL[#MODEL]. Raises UsageError."""
    url, _, model = backend.removeprefix("openai:").partition("#")
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_sound = False
    if not backend.startswith("openai:") or not is_sound or parts.query or parts.username:
        raise UsageError(
            f"--backend {backend!r} is not understood", "llama, or openai:http://HOST:PORT/v1[#MODEL]"
        )
    path = parts.path.rstrip("/") or "/v1"
    return f"{parts.scheme}://{parts.netloc}{path}", model or None


class RemoteClient:
    """One server. Close it."""

    def __init__(
        self, base_url: str, key: str | None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        import httpx2

        self.base_url, self._sleep = base_url, sleep
        self.host = urlsplit(base_url).hostname or ""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx2.Client(
            headers=headers,
            timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
            trust_env=not self.is_here,
        )

    @property
    def is_here(self) -> bool:
        """Whether the server is on this machine."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def close(self) -> None:
        """Drop its connections; a stream in another thread ends with BackendError."""
        self._client.close()

    def models(self) -> list[dict[str, Any]]:
        """The rows of /models. Raises BackendError."""
        with self._answered("GET", "/models", None) as response:
            value = _json(response.read())
        rows = value.get("data") if isinstance(value, dict) else None
        if not isinstance(rows, list):
            raise self._error("answers with something that is no list of models", "an URL that ends in /v1?")
        return [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]

    def chat(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        """The pieces of one streamed answer; the last one has a finish_reason. Raises BackendError."""
        import httpx2

        body = {**payload, "stream": True, "stream_options": {"include_usage": True}}
        last: Delta | None = None
        try:
            with self._answered("POST", "/chat/completions", body) as response:
                for line in response.iter_lines():
                    data = line.removeprefix(DATA).strip() if line.startswith(DATA) else ""
                    if data == DONE:
                        break
                    if not data:
                        continue
                    delta = self._delta(_json(data.encode()))
                    if delta.finish_reason is None and last is None:
                        yield delta
                    else:
                        last = _joined(last, delta)
        except httpx2.HTTPError as error:
            raise self._broken(error) from None
        if last is None:
            raise self._error("ended the answer in the middle", "ask again; its log may say why")
        yield last

    # --- inside ---------------------------------------------------------------------------------------

    def _delta(self, value: Any) -> Delta:
        """One event. Raises BackendError for one that tells an error, or is none."""
        if not isinstance(value, dict):
            raise self._error("sent something that is no chat completion", "an OpenAI-compatible server?")
        if value.get("error"):
            raise self._error(f"broke off: {_said(value)}", "its log may say more")
        choices, usage = value.get("choices") or [{}], value.get("usage") or {}
        delta = choices[0].get("delta") or {}
        return Delta(
            text=_whole_text(delta.get("content") or ""),
            thinking=_whole_text(delta.get("reasoning_content") or ""),
            finish_reason=choices[0].get("finish_reason"),
            n_prompt=usage.get("prompt_tokens"),
            n_cached=(usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0,
            n_generated=usage.get("completion_tokens"),
        )

    @contextmanager
    def _answered(self, method: str, path: str, body: Any) -> Iterator[httpx2.Response]:
        """A response with status 200, not yet read; tried again where that may help. Raises BackendError."""
        import httpx2

        for pause_s in (*PAUSES_S, None):
            request = self._client.build_request(method, f"{self.base_url}{path}", json=body)
            try:
                response = self._client.send(request, stream=True)
            except httpx2.ConnectError as error:
                raise self._unreachable(error) from None
            except (httpx2.HTTPError, RuntimeError) as error:
                if pause_s is None or isinstance(error, RuntimeError):
                    raise self._broken(error) from None
                self._sleep(pause_s)
                continue
            try:
                if response.status_code == 200:
                    yield response
                    return
                response.read()
                if pause_s is None or not _may_pass(response.status_code):
                    raise self._refused(response)
                self._sleep(_pause(response, pause_s))
            finally:
                response.close()

    def _error(self, what: str, hint: str) -> BackendError:
        return BackendError(f"{self.base_url} {what}", hint)

    def _unreachable(self, error: Exception) -> BackendError:
        return self._error(
            f"cannot be reached: {_reason(error)}", "is the server running, and the URL right?"
        )

    def _broken(self, error: Exception) -> BackendError:
        import httpx2

        if isinstance(error, httpx2.TimeoutException):
            return self._error(f"sent nothing for {SILENCE_S:g} s", "is it busy? ask again")
        return self._error(f"broke off: {_reason(error)}", "ask again; its log may say why")

    def _refused(self, response: httpx2.Response) -> BackendError:
        """What a status other than 200 means."""
        status, said = response.status_code, _said(_json(response.content))
        because = f" ({status}){f': {said}' if said else ''}"
        if status in (401, 403):
            return self._error(f"refuses the API key{because}", f"set {KEY_VARIABLE}")
        if status == 429:
            return self._error(f"takes no more requests now{because}", "try again later")
        if status >= 500:
            return self._error(f"failed{because}", "its log may say why")
        if status == 404:
            return self._error(f"does not have that{because}", "the URL's path, and openai:URL#MODEL")
        if "context" in said.lower() or "too long" in said.lower():
            return self._error(f"finds the prompt too long{because}", "a smaller --ctx or --max-tokens")
        return self._error(f"refuses the request{because}", "its documentation says what it takes")


def _may_pass(status: int) -> bool:
    return status in (408, 429) or status >= 500


def _pause(response: httpx2.Response, pause_s: float) -> float:
    """Seconds until the next attempt."""
    try:
        return min(LONGEST_PAUSE_S, max(0.0, float(response.headers.get("retry-after", pause_s))))
    except ValueError:
        return pause_s


def _joined(last: Delta | None, delta: Delta) -> Delta:
    """The last piece with what comes behind it."""
    if last is None:
        return delta
    return Delta(
        last.text + delta.text,
        last.thinking + delta.thinking,
        last.finish_reason,
        delta.n_prompt if delta.n_prompt is not None else last.n_prompt,
        delta.n_cached or last.n_cached,
        delta.n_generated if delta.n_generated is not None else last.n_generated,
    )


def _whole_text(text: str) -> str:
    """The text; half of a surrogate pair, as of an emoji cut between two events, becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _said(value: Any) -> str:
    """The message of an error object, in one short line."""
    error = value.get("error") if isinstance(value, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(said).split())[:MAX_SAID] if said else ""


def _reason(error: Exception) -> str:
    """What the operating system or the protocol says, in one line."""
    said = " ".join(str(error).split())
    return said[said.find("] ") + 2 :].lower() if said.startswith("[Errno") else said or type(error).__name__
