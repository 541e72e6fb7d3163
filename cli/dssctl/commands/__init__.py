"""One module a noun: its verbs, and what it shows of a thing.

Invariant: a command asks the client, turns answers into items and hands these to the renderer.
It returns nothing, raises conditions, and prints nothing itself.
"""
