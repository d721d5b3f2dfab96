"""Many questions from a file, an answer a line, resumed where it was stopped. A leaf: knows no terminal.

jobs.py      a file of jobs → rows, good and bad        pure
tasks.py     rows → tasks with their keys               reads documents' bytes
plan.py      tasks + results that are there → groups    pure
results.py   the file of results: read, repair, append
answering.py a group of one document's questions → outcomes, with one model
dispatch.py  groups → workers, what a dead one leaves   pure
workers.py   processes, worker.py in each
cluster.py   actors of Ray, actor.py in each; spread.py: a task whose documents several of them read
run.py       all of it, as events
"""
