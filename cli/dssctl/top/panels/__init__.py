"""Panels above, below and beside a list: tiles, charts, facts.

Invariant: a panel returns exactly as many lines as it was asked for, each of exactly its width.
"""
