"""Completion of words in a shell: names that exist now, within the time between two key strokes.

Each list that `dssctl` shows stores its names in the user's cache; ``dssctl __complete`` answers
from there. Invariant: the code that answers loads only the smallest parts of the standard library,
and prints only safe names, never an error.
"""
