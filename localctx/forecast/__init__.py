"""Before a run: the strategy, minutes, memory and disk it will take, on this machine or another; no weights
are loaded. Knows no commands and no rendering.

`planning.make_plan` for documents, `suggest.suggest` for known models, `calibration` for measured speeds.
"""
