"""Where items come from: a daemon, or a recording of what one told.

Invariant: items are told one after the other, by one task at a time, to one listener.
"""
