"""The dashboard without a terminal: its screens, its keys, and the effect of each key.

Invariant: pure; a view and a key give a view, and a view gives the lines for its terminal size.
"""
