"""A server that speaks the hub's endpoints, for one process or, run as a script, for others.

    python fake_hub.py FOLDER [PIECE_BYTES PAUSE_SECONDS]     prints its address, then a line a request

Every folder OWNER/REPO of FOLDER is a repository. What it can be told to do wrong: see FakeHub.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

REVISION = "5fb3c4d0a1e2b3c4d5e6f708192a3b4c5d6e7f80"
API = re.compile(r"/api/models/([^/]+/[^/?]+)(?:\?.*)?")
RESOLVE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


class FakeHub(ThreadingHTTPServer):
    """The hub on a free port of this machine. `asked` lists (path, first byte wanted) of each transfer."""

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.asked: list[tuple[str, int]] = []
        self.n_sent = 0
        self.piece_bytes, self.pause_seconds = 1 << 16, 0.0
        self.holds_at: int | None = None  # bytes after which a transfer waits until this is None
        self.hashes: dict[str, str] = {}  # announced instead of the right ones
        self.sizes: dict[str, int] = {}
        self.without_hash: set[str] = set()
        self.cut_after: list[int] = []  # bytes after which each coming transfer breaks off
        self.status: int | None = None  # answer to every request
        self.headers_of_status: dict[str, str] = {}
        self.page: bytes | None = None  # what a login page says, to every request
        self.ignores_ranges = False
        self.redirects_to: str | None = None
        self.tokens: list[str | None] = []

    @property
    def address(self) -> str:
        """For HF_ENDPOINT."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        self.server_close()

    def info(self, repo: str) -> dict[str, object]:
        """What the API says of a repository."""
        siblings = []
        for path in sorted((self.root / repo).rglob("*")):
            if path.is_file():
                name, data = path.relative_to(self.root / repo).as_posix(), path.read_bytes()
                digest = self.hashes.get(name, hashlib.sha256(data).hexdigest())
                size = self.sizes.get(name, len(data))
                entry: dict[str, object] = {"rfilename": name, "size": size, "blobId": "0" * 40}
                if name not in self.without_hash:
                    entry["lfs"] = {"sha256": digest, "size": size, "pointerSize": 134}
                siblings.append(entry)
        return {"id": repo, "sha": REVISION, "siblings": siblings, "tags": [], "private": False}


class _Handler(BaseHTTPRequestHandler):
    server: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """The API, or a file."""
        hub = self.server
        if hub.status is not None:
            return self._answer(hub.status, b"{}", **hub.headers_of_status)
        if hub.page is not None:
            return self._answer(200, hub.page, Content_Type="text/html")
        if match := API.fullmatch(self.path):
            if not (hub.root / match[1]).is_dir():
                return self._answer(404, b"{}", X_Error_Code="RepoNotFound")
            return self._answer(200, json.dumps(hub.info(match[1])).encode(), Content_Type="application/json")
        if match := RESOLVE.fullmatch(self.path):
            return self._file(match[1], match[2], match[3])
        return self._answer(404)

    def do_CONNECT(self) -> None:
        """What a proxy is asked, which this one refuses to a stranger."""
        self._answer(407)

    def _file(self, repo: str, revision: str, name: str) -> None:
        hub = self.server
        hub.tokens.append(self.headers.get("Authorization"))
        if revision != REVISION or not (hub.root / repo / name).is_file():
            return self._answer(404, b"{}", X_Error_Code="EntryNotFound")
        if hub.redirects_to is not None:
            return self._answer(302, Location=hub.redirects_to + self.path)
        data = (hub.root / repo / name).read_bytes()
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        start = int(wanted[1]) if wanted and not hub.ignores_ranges else 0
        hub.asked.append((name, int(wanted[1]) if wanted else 0))
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.send_header("Connection", "close")
        self.end_headers()
        self._send(data[start:])

    def _send(self, data: bytes) -> None:
        hub = self.server
        limit = hub.cut_after.pop(0) if hub.cut_after else len(data)
        for first in range(0, min(limit, len(data)), hub.piece_bytes):
            piece = data[first : min(first + hub.piece_bytes, limit)]
            while hub.holds_at is not None and first >= hub.holds_at:
                time.sleep(0.01)
            try:
                self.wfile.write(piece)
            except OSError:  # the reader was killed: what a test wants
                return
            hub.n_sent += len(piece)
            if hub.pause_seconds:
                time.sleep(hub.pause_seconds)


def main() -> None:
    """Serve until killed."""
    with FakeHub(Path(sys.argv[1])) as hub:
        hub.piece_bytes, hub.pause_seconds = int(sys.argv[2]), float(sys.argv[3])
        print(hub.address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
