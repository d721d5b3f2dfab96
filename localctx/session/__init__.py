"""documents + model + question → answer: the verbs, and the only place that joins stages. Shows nothing.

How to add a strategy
    1. Add its rung to the ladder in `strategy.py`: when it is chosen and why.
    2. Give the verb a function that makes its filling (what goes into the context, and which passages).
    3. Say in the coverage what was read and attended.
    4. Name it in docs/cli.md and CHANGELOG.md; test it with the echo engine and with a real tiny model.
"""
