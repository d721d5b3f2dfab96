#!/bin/sh
# localctx between other programs: documents come in through a pipe, answers go out on standard output alone,
# everything else is on standard error, and the exit code says how it went.
#
#     sh docs/examples/pipe.sh QUESTION < DOCUMENT
set -eu

question=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The answer as text: nothing but the answer goes on through the pipe.
tee "$folder/document" | localctx ask - -q "$question" --quiet | head -n 1

# The same as JSON, for programs: was it supported, and by which words?
localctx ask - -q "$question" --json --quiet <"$folder/document" |
    python3 -c '
import json, sys
answer = json.load(sys.stdin)
print("support:", answer["support"])
for citation in answer["citations"]:
    print("quote:", citation["quote"])
'

# The text that localctx reads, for grep; offsets of citations count its characters.
localctx chunk - --text <"$folder/document" | grep -c . | sed 's/^/lines of text: /'
