"""``dssd check``: whether what lies in a data directory is whole, while no daemon runs on it.

Invariant: nothing in the directory is changed. What a start would mend by itself is no damage.
"""
