"""The OpenAI-compatible server, a leaf: HTTP in front, one decoding thread behind. Needs the extra `serve`.

keys, quota, fairness say who may be served and who is next; worker decodes; documents keeps what was
uploaded; bodies, replies and problems are the shapes of the wire; app puts them together, running listens.
"""
