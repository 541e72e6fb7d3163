"""The dashboard without a terminal: its screens, its keys, and what each key does.

Invariant: pure; a view and a key give a view, a view gives the lines of a terminal of its size.
"""
