"""Two versions of a contract: what became of each clause, and what follows from it.

    python docs/examples/compare_contracts.py OLD NEW [-q QUESTION]... [--model NAME]

Every question is asked of both versions and answered with the passage that supports the answer.
"""

from __future__ import annotations

import argparse

import localctx


def show(compared: localctx.Compared) -> None:
    """Print what differs, a difference a line, with the words on both sides."""
    for difference in compared.differences:
        place = difference.a or difference.b
        clause = " › ".join(place.heading_path) if place else ""
        print(f"{difference.kind:<9}{clause}")
        for before, after in difference.changes:
            print(f"  {before or '(nothing)'} → {after or '(nothing)'}")


def ask_both(question: str, versions: dict[str, localctx.OpenDocument]) -> None:
    """Print each version's answer with its passage."""
    print(f"\n{question}")
    for name, document in versions.items():
        answer = document.ask(question)
        quote = f" “{answer.citations[0].quote}”" if answer.citations else ""
        print(f"  {name} ({answer.support}): {answer.text}{quote}")


def main() -> None:
    """Read the arguments, print the comparison."""
    parser = argparse.ArgumentParser(description="Compare two versions of a contract.")
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("-q", "--question", action="append", default=[])
    parser.add_argument("--model")
    given = parser.parse_args()
    show(localctx.compare(given.old, given.new))
    if given.question:
        with (
            localctx.load_model(given.model) as model,
            model.open(given.old) as old,
            model.open(given.new) as new,
        ):
            for question in given.question:
                ask_both(question, {"old": old, "new": new})


if __name__ == "__main__":
    main()
