"""Make facts.md and facts.jsonl, for `localctx bench compare`: python docs/samples/make_facts.py"""

from __future__ import annotations

import json
from pathlib import Path

from localctx.bench.compare_inputs import planted
from localctx.document import open_document

FOLDER = Path(__file__).parent
N_CHARACTERS, N_ANSWERED = 2_300, 4


def main() -> None:
    """The beginning of the first message, facts planted in it; four questions about them, one about none."""
    with open_document(str(FOLDER / "state-of-the-union.pdf"), cache_dir=None) as document:
        text = document.read(0, N_CHARACTERS)
    made, questions = planted(text[: text.rindex(". ") + 1], "en", 0, 4)
    answered = [one for one in questions if one.gold][:N_ANSWERED]
    asked = [*answered, next(one for one in questions if not one.gold)]
    rows = [{"question": one.text, "answers": list(one.gold)} for one in asked]
    (FOLDER / "facts.md").write_text(made + "\n", "utf-8", newline="\n")
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (FOLDER / "facts.jsonl").write_text(lines, "utf-8", newline="\n")


if __name__ == "__main__":
    main()
