"""Errors on the wire, in OpenAI's shape: {"error": {message, type, param, code}}. Nothing of a traceback."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from localctx.errors import InputError, LocalctxError, OutOfMemory, UsageError
from localctx.serve.tickets import Busy, Quota, Stopping

__all__ = ["Problem", "of_busy", "of_error", "of_unreadable", "of_validation", "stopping"]


KINDS = ("str", "list", "dict")
"""Kinds of a union, which stand in the place of an error beside the names of parameters."""


class Problem(Exception):
    """What a client did wrong, or may try again."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.kind, self.code, self.param = status, message, kind, code, param
        self.headers = dict(headers or {})

    def to_json(self) -> dict[str, Any]:
        """The body, or the data of a stream's last event."""
        message = self.message.encode("utf-8", "replace").decode()
        return {"error": {"message": message, "type": self.kind, "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        """The whole response."""
        return JSONResponse(self.to_json(), self.status, self.headers)


def of_busy(reason: Busy | Stopping) -> Problem:
    """Why a request was not taken."""
    if isinstance(reason, Stopping):
        return stopping()
    retry = {"Retry-After": str(math.ceil(reason.retry_after_s))}
    if isinstance(reason, Quota):
        message = f"the key's tokens a second are used up; try again in {math.ceil(reason.retry_after_s)} s"
        return Problem(429, message, kind="rate_limit_error", code="rate_limit_exceeded", headers=retry)
    return Problem(429, "too many requests wait", kind="rate_limit_error", code="queue_full", headers=retry)


def stopping() -> Problem:
    """The server takes nothing more."""
    return Problem(
        503,
        "the server is shutting down",
        kind="server_error",
        code="shutting_down",
        headers={"Retry-After": "5"},
    )


def of_error(error: LocalctxError) -> Problem:
    """An error of the work itself."""
    message = f"{error.message} ({error.hint})" if error.hint else error.message
    if isinstance(error, UsageError):
        is_length = "does not fit" in error.message or "do not fit" in error.message
        return Problem(400, message, code="context_length_exceeded" if is_length else None)
    if isinstance(error, InputError):
        return Problem(400, message, code="unusable_file")
    if isinstance(error, OutOfMemory):
        return Problem(503, message, kind="server_error", code="out_of_memory", headers={"Retry-After": "10"})
    return Problem(500, message, kind="server_error")


def of_validation(error: RequestValidationError) -> Problem:
    """The first thing that a body, form or query gets wrong, in OpenAI's words."""
    errors = error.errors()
    top = errors[0].get("loc", ())[:2]
    alike = [one for one in errors if one.get("loc", ())[:2] == top]
    # Of a union, the kind that came furthest: what is wrong inside of a list says more than "no string".
    n_deepest = max(len(one.get("loc", ())) for one in alike)
    deepest = [one for one in alike if len(one.get("loc", ())) == n_deepest]
    param = _param(deepest[0].get("loc", ()))
    first = [one for one in deepest if _param(one.get("loc", ())) == param][-1]
    kind, said = first.get("type", ""), str(first.get("msg", "")).removeprefix("Value error, ")
    if kind.startswith("json"):
        return Problem(400, f"The body is not valid JSON: {said}.", code="invalid_json")
    if kind == "missing" and param is None:
        return Problem(400, "The body is missing.", code="missing_required_parameter")
    if param is None:
        return Problem(400, f"Invalid body: {said}.", code="invalid_value")
    if kind == "missing":
        return Problem(
            400, f"Missing required parameter: '{param}'.", code="missing_required_parameter", param=param
        )
    if kind == "extra_forbidden":
        return Problem(400, f"Unknown parameter: '{param}'.", code="unknown_parameter", param=param)
    return Problem(400, f"Invalid value for '{param}': {said}.", code="invalid_value", param=param)


def of_unreadable(media_type: str) -> Problem:
    """A body that is not what its Content-Type says."""
    if media_type.startswith(("multipart/", "application/x-www-form-urlencoded")):
        said = "The body is no whole form (multipart/form-data, with 'file' and 'purpose')."
        return Problem(400, said, code="invalid_form")
    return Problem(400, "The body is not valid JSON.", code="invalid_json")


def _param(place: Sequence[int | str]) -> str | None:
    """`messages[0].content` of ("body", "messages", 0, "content", "str")."""
    text = ""
    for part in place[1:]:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier() and part not in KINDS:
            text += f".{part}" if text else part
    return text or None
