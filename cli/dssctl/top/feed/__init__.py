"""Where items come from: a daemon, or a recording of one.

Invariant: items are reported one after the other, by one task at a time, to one listener.
"""
