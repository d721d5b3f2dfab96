"""The errors a user can meet. Knows nothing of terminals; `exit_code` is the promise of docs/cli.md.

LocalctxError            1  failed
├── UsageError           2  bad usage: option, key, value
│   └── NotYetAvailable  2  a command or option of a later release
├── InputError           3  the input cannot be used
│   ├── PasswordNeeded
│   ├── NoTextError      scanned, empty or blank
│   ├── UnknownFormat    binary or unsupported type
│   └── LimitExceeded    a cap on time, memory, members, inflated bytes
├── ModelError           1  a model file that is missing, broken or of the wrong kind
│   ├── OutOfMemory      1  would not fit; names sizes and the options that change them
│   └── NotComposable    1  the model's KV cannot be cut, moved and put together again
├── BackendError         1  the server that generates does not do it
├── PartlyDone           4  some inputs failed
└── Interrupted        130  stopped by the user
"""

from __future__ import annotations

__all__ = [
    "BackendError",
    "InputError",
    "Interrupted",
    "LimitExceeded",
    "LocalctxError",
    "ModelError",
    "NoTextError",
    "NotComposable",
    "NotYetAvailable",
    "OutOfMemory",
    "PartlyDone",
    "PasswordNeeded",
    "UnknownFormat",
    "UsageError",
]


class LocalctxError(Exception):
    """An error that is shown to the user as one line: what and where, then what to do (`hint`)."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def kind(self) -> str:
        """The error's type as programs read it (`error.type` in JSON)."""
        return type(self).__name__


class UsageError(LocalctxError):
    """A command, option, key or value that is not understood."""

    exit_code = 2


class NotYetAvailable(UsageError):
    """A promised command or option that this version does not have."""


class InputError(LocalctxError):
    """The input cannot be used."""

    exit_code = 3


class PasswordNeeded(InputError):
    """Encrypted, and neither the empty password nor the given one opens it."""


class NoTextError(InputError):
    """There is no text to read: scanned images only, empty, or only white space."""


class UnknownFormat(InputError):
    """Neither text nor a supported document type."""


class LimitExceeded(InputError):
    """A cap on time, memory, members, nesting or inflated size was reached."""


class ModelError(LocalctxError):
    """A model file that is missing, damaged, of the wrong kind, or refused by llama.cpp."""


class OutOfMemory(ModelError):
    """The estimate does not fit the memory that is free."""


class NotComposable(ModelError):
    """A model whose KV cannot be cut into runs and put back elsewhere; the message says why."""


class BackendError(LocalctxError):
    """The server that --backend names cannot be reached, refuses, or breaks off."""


class PartlyDone(LocalctxError):
    """Some inputs were done, others failed; the message lists how many."""

    exit_code = 4


class Interrupted(LocalctxError):
    """The user stopped the work (Ctrl-C)."""

    exit_code = 130
