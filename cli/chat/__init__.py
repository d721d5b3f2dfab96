"""`localctx chat`: a conversation's model, documents and file (chat), what / begins (commands), and the two
ways of being talked to: a terminal (terminal) and lines of standard input (piped). No logic that a Python
user would miss: that is session.conversation's.
"""
