"""The pages of ``describe``: is it healthy, what is it doing, what next.

Invariant: a verdict is worked out of facts alone, by pure functions; programs get every fact and
the verdict, whatever a table shows.
"""
