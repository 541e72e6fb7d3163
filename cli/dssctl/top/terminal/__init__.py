"""The dashboard on a terminal: the only part that knows Textual.

Invariant: it draws what a view says and hands on keys; it decides nothing that the view can.
"""
