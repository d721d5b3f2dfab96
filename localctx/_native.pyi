"""The C++ core. Buffers are read with the GIL released; offsets are 64-bit."""

from typing_extensions import Buffer

class Utf8Index:
    """Byte <-> code-point map of UTF-8 text that is fed once, in order, in pieces of any size.

    Keeps one checkpoint per `step` bytes, so a 1 GB text costs about 2 MB at the default step.
    """

    def __init__(self, step: int = 4096) -> None: ...
    def feed(self, data: Buffer) -> bool:
        """Validate and count the next bytes (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF;
        a character may straddle two pieces). False once invalid; `error_offset` then says where, and the
        counts stay at what precedes it.
        """
    def finish(self) -> bool:
        """End of text; False when it ends inside a character."""
    @property
    def n_bytes(self) -> int: ...
    @property
    def n_code_points(self) -> int:
        """Complete code points so far."""
    @property
    def n_nul(self) -> int:
        """NUL bytes so far."""
    @property
    def error_offset(self) -> int | None:
        """Byte offset of the first byte of the first invalid sequence."""
    def checkpoint_for_code_point(self, code_point: int) -> tuple[int, int]:
        """(byte offset, code-point offset) of the last checkpoint at or before `code_point`; the byte
        offset is a character boundary. Raises IndexError outside [0, n_code_points].
        """

def utf8_advance(data: Buffer, n_code_points: int) -> int:
    """Bytes taken by the first `n_code_points` of `data` (which starts on a boundary and is valid);
    len(data) when it holds fewer.
    """

ignore_log_address: int
"""Address of a C function of ggml_log_callback's type that does nothing."""

class AbortFlag:
    """An atomic flag, its C abort callback (int64 address of `bool (*)(void*)`) and its data pointer.

    Hand both addresses to llama.cpp; the flag must outlive the context.
    """

    def __init__(self) -> None: ...
    def set(self) -> None: ...
    def clear(self) -> None: ...
    @property
    def is_set(self) -> bool: ...
    @property
    def callback_address(self) -> int: ...
    @property
    def data_address(self) -> int: ...
    def watch_sigint(self) -> None:
        """From now until unwatch_sigint(), SIGINT also sets this flag from the C signal handler, before
        Python's own handler (still called) gets its turn. A SIGINT that the process ignores stays ignored.
        Raises RuntimeError while another flag watches.
        """
    def unwatch_sigint(self) -> None: ...

__version__: str
