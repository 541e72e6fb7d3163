"""The dashboard on a terminal: the only part that knows Textual.

Invariant: it draws what a view says and passes keys on; it decides nothing that the view can
decide.
"""
