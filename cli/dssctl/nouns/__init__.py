"""What is printed of each noun: its fields, the sentence of each, and how a table shows it.

Invariant: a noun's fields and columns stand in one module; no wire, no daemon.
"""
