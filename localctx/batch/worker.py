"""One worker process: a line of JSON in (settings, then groups of tasks), a line a result out.

It ends with the process that started it, whatever it is at.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO

from localctx.batch.answering import Answering
from localctx.batch.tasks import Task
from localctx.errors import LocalctxError
from localctx.settings import Settings

__all__ = ["main"]


def main() -> None:
    """Answer until the input ends."""
    send = _sender(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)  # whatever else prints goes elsewhere
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    settings = Settings(**json.loads(lines.get()))
    try:
        answering = Answering(settings)
    except LocalctxError as error:
        send({"fatal": [error.message, error.hint]})
        return
    while True:
        tasks = [Task.from_json(value) for value in json.loads(lines.get())]
        for task, row in answering.answer(tasks):
            send({"content": task.content, "row": row})
        send({"idle": True})


def _sender(stream: TextIO) -> Callable[[dict[str, Any]], None]:
    def send(value: dict[str, Any]) -> None:
        stream.write(json.dumps(value) + "\n")
        stream.flush()

    return send


def _read(lines: queue.Queue[str]) -> None:
    """Hand the lines on; at their end the process ends, in mid-answer too."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)
