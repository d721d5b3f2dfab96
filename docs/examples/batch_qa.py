"""Ask every question of every document, one JSON line an answer; started again, it goes on where it was.

    python docs/examples/batch_qa.py QUESTIONS.txt DOCUMENT... -o answers.jsonl [--model NAME]

QUESTIONS.txt holds one question a line. A document that cannot be used becomes a line with an `error`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import localctx


def answered(path: Path) -> set[tuple[str, str]]:
    """(document, question) of every whole line that is there; a torn last line is cut off."""
    if not path.exists():
        return set()
    lines = path.read_text("utf-8").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        path.write_text("".join(lines[:-1]), "utf-8")
    rows = [json.loads(line) for line in lines if line.endswith("\n")]
    return {(row["document"], row["question"]) for row in rows if "error" not in row}


def rows(model: localctx.LoadedModel, document: str, questions: list[str]) -> list[dict[str, object]]:
    """An answer a question; each document is read once, and what was computed for it is kept in the store."""
    found: list[dict[str, object]] = []
    try:
        with model.open(document) as opened:
            for question in questions:
                answer = opened.ask(question)
                found.append({"document": document, "question": question, **answer.to_json()})
    except localctx.LocalctxError as error:
        found.append({"document": document, "question": None, "error": error.message, "hint": error.hint})
    return found


def main() -> None:
    """Read the arguments, append the answers."""
    parser = argparse.ArgumentParser(description="Ask every question of every document.")
    parser.add_argument("questions", type=Path)
    parser.add_argument("documents", nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--model")
    given = parser.parse_args()
    questions = [line.strip() for line in given.questions.read_text("utf-8").splitlines() if line.strip()]
    done = answered(given.output)
    with localctx.load_model(given.model) as model, given.output.open("a", encoding="utf-8") as output:
        for document in given.documents:
            open_ones = [question for question in questions if (document, question) not in done]
            if open_ones:
                for row in rows(model, document, open_ones):
                    output.write(json.dumps(row, ensure_ascii=False) + "\n")
                    output.flush()


if __name__ == "__main__":
    main()
