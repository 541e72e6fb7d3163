"""Lines of text made of a picture: pure, the same for every terminal.

Invariant: a line is spans of text and the word for how each looks; which colours those words have
is not known here, and the text alone says all. What the daemon or a record said is made safe to
print before it becomes a span.
"""
