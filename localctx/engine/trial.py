"""One token from one model, as a JSON object on stdout; `localctx doctor` runs it in a child, which may die.

python -m localctx.engine.trial MODEL.gguf [cpu|NUMBER]: on what is chosen by itself, the CPU, that GPU alone.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path

from localctx.engine.options import DeviceOptions, EngineOptions
from localctx.errors import LocalctxError, ModelError
from localctx.values import Message, Request

__all__ = ["decode_one", "main"]

_N_CTX = 256


def decode_one(path: Path, options: EngineOptions | None = None) -> dict[str, object]:
    """Decode one token, as JSON values; "finite" says that all logits are numbers.

    Raises what opening a model and a context raise, ModelError when the evaluation was stopped.
    """
    import numpy as np

    from localctx.engine.batch_context import check_requests
    from localctx.engine.llama import open_model
    from localctx.engine.schedule import Slice

    with open_model(path, options) as model:
        prompt = model.prompt([Message("user", ("Say yes.",))])
        tokens = np.array(prompt.tokens, np.int32)
        context = model.open_context(min(max(_N_CTX, len(tokens) + 1), model.info.n_ctx_train or _N_CTX))
        check_requests([Request(prompt)], context.n_ctx)
        decoder, started, n_last = context.decoder, time.monotonic(), 0
        for start in range(0, len(tokens), model.n_batch):
            part = tokens[start : start + model.n_batch]
            n_last = len(part)
            if not decoder.evaluate([Slice(0, start, part, sample=start + n_last == len(tokens))]):
                raise ModelError(f"{model.info.name}: the evaluation was stopped")
        took_s = time.monotonic() - started
        logits = decoder.logits(n_last - 1)
        token = int(logits.argmax())
        return {
            "model": model.info.name,
            "token": token,
            "text": model.vocab.piece(token).decode("utf-8", "replace"),
            "finite": bool(np.isfinite(logits).all()),
            "tokens_per_s": round(len(tokens) / took_s, 1),
            "rope": dataclasses.asdict(context.rope),
        }


def main(arguments: list[str]) -> int:
    """Print what was built, and the token or {"error", "hint"}; returns the exit code."""
    from localctx.engine.llama import build_info, device_copy_speed

    report, options = build_info(), EngineOptions()
    if arguments[1:] == ["cpu"]:
        options = EngineOptions(gpu_layers="0")
    elif arguments[1:]:
        number = int(arguments[1])
        options = EngineOptions(gpu_layers="all", devices=DeviceOptions(main_gpu=number))
    try:
        report |= decode_one(Path(arguments[0]), options)
        _tell(report)
        if options.gpu_layers == "all":
            _tell(
                {"copy": dataclasses.asdict(device_copy_speed(number))}
            )  # after the token: this may fail too
    except LocalctxError as error:
        report |= {"error": error.message, "hint": error.hint}
        _tell(report)
    return 1 if "error" in report else 0


def _tell(report: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
