"""Write the records of documents that fulfil a JSON schema as a CSV table, each with where it stands.

python docs/examples/records_to_csv.py SCHEMA.json DOCUMENT... [--model NAME] > records.csv
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

import localctx


def main() -> None:
    """Read the command line, write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("schema", type=Path)
    parser.add_argument("documents", nargs="+")
    parser.add_argument("--model")
    options = parser.parse_args()
    schema = json.loads(options.schema.read_text("utf-8"))
    names = list(schema["properties"])
    table = csv.DictWriter(sys.stdout, [*names, "source", "page", "quote"], lineterminator="\n")
    table.writeheader()
    with localctx.open(*options.documents, model=options.model, max_tokens=256) as doc:
        for record in doc.extract(schema):
            place = record.citations[0]
            where = {"source": place.source, "page": place.page_label or place.page, "quote": place.quote}
            table.writerow({**record.value, **where})
        passed = doc.extraction.passed
    print(f"{passed.n_read:,} of {passed.n_units:,} sentences and rows read", file=sys.stderr)


if __name__ == "__main__":
    main()
