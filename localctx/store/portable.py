"""A document's KV as one file that can be carried to another machine: a segment's format, with the document
in it.

An imported file is not trusted: every figure is checked against its size, every checksum computed, every run
parsed, before anything is kept. What its numbers mean cannot be checked: import only from people you trust.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, get_args

from localctx.errors import InputError, UsageError
from localctx.given_files import open_given
from localctx.kv import RUN_TOKENS, KVSpace, PolicyKind, PrefillPolicy
from localctx.names import display_name
from localctx.store.compaction import run_facts
from localctx.store.documents import document_runs
from localctx.store.errors import StoreUnusable
from localctx.store.folder import os_error_text
from localctx.store.identity import ID_BYTES
from localctx.store.records import DocumentIdentity, StoredDocument
from localctx.store.segments import (
    MAX_SEGMENT_BYTES,
    Entry,
    Header,
    checksum_of,
    read_exactly,
    read_header,
    write_container,
)

if TYPE_CHECKING:
    from localctx.store.store import KVStore

__all__ = ["export", "import_file"]

FORMAT, VERSION = "localctx.kv", 1
MAX_TEXT = 1 << 16
MAX_TOKENS = 1 << 40
OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def export(store: KVStore, key: str, path: Path) -> int:
    """Write the document's runs, in all encodings, to `path`; the file's bytes.

    Raises UsageError for what import_file() would not take.
    """
    document = store.document(key)
    if document is None:
        raise UsageError(f"the store has no document {key}", "localctx store ls")
    _check_exportable(document)
    ids = [run_id for _, run_id in document_runs(store.catalogue, key)]
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "document": {**asdict(document.identity), "path": ""},
        "run_ids": [run_id.hex() for run_id in ids],
    }
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(temporary, OPEN_FLAGS, 0o600)
        try:
            with contextlib.ExitStack() as stack:
                entries = []
                for codec in document.codecs:
                    found = store.lookup(ids, codec)
                    views = stack.enter_context(store.reading(ids, codec))
                    for run_id in dict.fromkeys(ids):
                        if run_id in views:
                            run = found[run_id]
                            made = run_facts(run.id, run.codec, run.n_tokens, run.max_error)
                            entries.append((made, run.checksum, views[run_id]))
                size_bytes, _ = write_container(descriptor, facts, entries)
            os.fsync(descriptor)
            temporary.replace(path)
            return size_bytes
        finally:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise StoreUnusable(
            f"cannot write {display_name(path)}: {os_error_text(error)}", "name another place"
        ) from None


def _check_exportable(document: StoredDocument) -> None:
    name = document.identity.name
    if document.identity.is_state:
        raise UsageError(
            f"{name}: the state that is kept serves only the llama.cpp that made it and is not exported"
        )
    if document.identity.policy.kind == "lazy":
        raise UsageError(
            f"{name}: only passages that questions needed are kept, which are not exported",
            "localctx index prefills it as a whole",
        )
    if not document.n_runs:
        raise UsageError(f"{name}: no KV of it is stored", "localctx store ls")


def import_file(store: KVStore, path: Path) -> StoredDocument:
    """Check the file as a whole, then keep those of its runs that are not there yet."""
    shown = display_name(path)
    with _opened(path, shown) as file:
        try:
            header = read_header(file.fileno())
            identity, ids = _identity(header)
            wanted = set(ids)
            for entry in header.entries:
                _run_of(file, entry, wanted)
        except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
            reason = str(error) if type(error) is ValueError else "its header is not understood"
            raise InputError(f"{shown}: cannot be imported, {reason}", "export it again") from None
        ordinals = {run_id: ordinal for ordinal, run_id in enumerate(ids)}
        with store.writing(identity, ids) as writer:
            for entry in header.entries:
                run_id, codec = bytes.fromhex(entry.facts["id"]), entry.facts["codec"]
                if store.lookup([run_id], codec):
                    continue  # what is here is never replaced by what comes from outside
                data, max_error = _run_of(file, entry, wanted)
                writer.add(
                    ordinals[run_id],
                    run_id,
                    data,
                    n_tokens=entry.facts["n_tokens"],
                    codec=codec,
                    max_error=max_error,
                )
    stored = store.document(identity.key)
    if stored is None:
        raise InputError(f"{shown}: cannot be imported, there are no runs in it", "export it again")
    return stored


@contextlib.contextmanager
def _opened(path: Path, shown: str) -> Iterator[BinaryIO]:
    """The file; never a pipe that somebody may write to, or a device."""
    try:
        with open_given(path) as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"{shown}: no such file", "localctx store export writes one") from None
    except OSError as error:
        raise InputError(f"{shown}: cannot be read: {os_error_text(error)}") from None


def _identity(header: Header) -> tuple[DocumentIdentity, list[bytes]]:
    """The document, all its values checked. Raises ValueError, KeyError, TypeError."""
    facts = header.facts
    if facts.get("format") != FORMAT:
        raise ValueError("it holds no exported document")
    if facts["version"] != VERSION:
        raise ValueError(f"it has version {facts['version']!r}, this localctx reads version {VERSION}")
    value = facts["document"]
    space, policy = value["space"], value["policy"]
    if policy["kind"] not in get_args(PolicyKind):
        raise ValueError("its policy is not known")
    prefix = tuple(_whole(token, 1 << 31) for token in space["prefix"])
    identity = DocumentIdentity(
        space=KVSpace(_text(space["model"]), _text(space["rope"]), prefix),
        policy=PrefillPolicy(
            policy["kind"],
            _whole(policy["window"], MAX_TOKENS),
            _whole(policy.get("sinks", 0), MAX_TOKENS),
            _whole(policy.get("routed", 0), MAX_TOKENS),
            _whole(policy.get("stride", 0), MAX_TOKENS),
            _text(policy.get("router", "")),
        ),
        text_hash=_text(value["text_hash"]),
        n_tokens=_whole(value["n_tokens"], MAX_TOKENS),
        name=display_name(_text(value["name"])),
        n_bytes=_whole(value["n_bytes"], MAX_TOKENS),
        model=display_name(_text(value["model"])),
    )
    ids = [bytes.fromhex(_text(run_id)) for run_id in facts["run_ids"]]
    if any(len(run_id) != ID_BYTES for run_id in ids):
        raise ValueError("its run ids are damaged")
    if identity.policy.kind != "independent" and len(ids) != -(-identity.n_tokens // RUN_TOKENS):
        raise ValueError("it has not as many runs as its document")
    return identity, ids


def _run_of(file: BinaryIO, entry: Entry, wanted: set[bytes]) -> tuple[bytes, tuple[float, float]]:
    """A run's bytes and errors, parsed and compared with the header. Raises ValueError, KeyError."""
    from localctx._native import Run

    run_id, codec = bytes.fromhex(_text(entry.facts["id"])), _text(entry.facts["codec"])
    n_tokens = _whole(entry.facts["n_tokens"], RUN_TOKENS)
    if run_id not in wanted or not 0 < entry.size_bytes < MAX_SEGMENT_BYTES:
        raise ValueError("a run does not belong to its document")
    data = bytearray(entry.size_bytes)
    if not read_exactly(file.fileno(), memoryview(data), entry.offset) or checksum_of(data) != entry.checksum:
        raise ValueError("it is damaged")
    run = Run(bytes(data))
    if run.n_tokens != n_tokens or codec != run.codec:
        raise ValueError("a run is not what the header says")
    key_error, value_error = run.max_error
    if not (math.isfinite(key_error) and math.isfinite(value_error)):
        raise ValueError("a run's errors are no numbers")
    return bytes(data), (key_error, value_error)


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError("a value of its header is no text")
    return value


def _whole(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("a value of its header is no number")
    return value
