"""``dssctl``, the operator's tool: one file a noun, one renderer for all of them.

Importing this package costs nothing: whatever is slow to load is imported where it is used.
"""

VERSION = "0.1.0"
"""Version of the distribution; a test compares both, because reading the metadata takes 15 ms."""
