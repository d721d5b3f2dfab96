#!/bin/sh
# Every question of a text file, a line each, to every document of a folder: a table of answers. Stopped at any
# moment, the same command goes on.
#
#     sh docs/examples/batch.sh QUESTIONS.txt FOLDER TABLE.tsv [OPTION...]
set -eu

questions=$1 folder=$2 table=$3
shift 3

python3 -c '
import json, sys
for number, line in enumerate(sys.stdin, 1):
    if line.strip():
        print(json.dumps({"id": f"q{number}", "question": line.strip()}))
' <"$questions" >"$table.jobs.jsonl"

status=0
localctx batch "$table.jobs.jsonl" --docs "$folder" -o "$table.jsonl" "$@" || status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 4 ] || exit "$status"

python3 -c '
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    answer = row.get("answer") or "failed: " + row["error"]["message"]
    print(row["id"], row.get("support", ""), " ".join(answer.split()), sep="\t")
' <"$table.jsonl" >"$table"
exit "$status"
