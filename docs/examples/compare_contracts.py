"""Two versions of a contract: which clauses were kept, changed, added or removed, and what follows from it.

    python docs/examples/compare_contracts.py OLD NEW [-q QUESTION]... [--model NAME]

Clauses are the sections of the documents, matched by title, then by their words. Every question is asked of
both versions and answered with the passage that supports the answer.
"""

from __future__ import annotations

import argparse
from difflib import SequenceMatcher

import localctx

SAME, SIMILAR = 0.999, 0.6


def clauses(document: localctx.OpenDocument) -> dict[str, str]:
    """Text of each innermost section by its title; the whole document where it has no sections."""
    found: dict[str, str] = {}
    sections = document.document.sections
    for number, section in enumerate(sections):
        is_innermost = number + 1 == len(sections) or sections[number + 1].level <= section.level
        if is_innermost:
            found[section.title] = " ".join(document.document.read(section.start, section.end).split())
    return found or {"": " ".join(document.document.read(0, 1 << 40).split())}


def likeness(one: str, other: str) -> float:
    """1 for the same words in the same order."""
    return SequenceMatcher(None, one.split(), other.split(), autojunk=False).ratio()


def compare(old: dict[str, str], new: dict[str, str]) -> list[tuple[str, str, str, str]]:
    """(what happened, title, old text, new text) of each clause."""
    left, found = dict(new), []
    for title, text in old.items():
        best = (
            title if title in left else max(left, key=lambda name: likeness(text, left[name]), default=None)
        )
        score = likeness(text, left[best]) if best is not None else 0.0
        if best is None or (best != title and score < SIMILAR):
            found.append(("removed", title, text, ""))
            continue
        kind = "kept" if score >= SAME else "changed"
        found.append((kind, title, text, left.pop(best)))
    return found + [("added", title, "", text) for title, text in left.items()]


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
    with (
        localctx.load_model(given.model) as model,
        model.open(given.old) as old,
        model.open(given.new) as new,
    ):
        for kind, title, before, after in compare(clauses(old), clauses(new)):
            print(f"{kind:<8}{title}")
            if kind == "changed":
                print(f"  - {before}\n  + {after}")
        for question in given.question:
            ask_both(question, {"old": old, "new": new})


if __name__ == "__main__":
    main()
