"""What stands above, below and beside a list: tiles, charts, facts.

Invariant: a panel gives exactly as many lines as it was asked for, each exactly as wide.
"""
