"""``dssctl``, the operator's tool: one file a noun, one renderer for all of them.

Importing this package costs nothing: whatever is slow to load is imported where it is used.
"""

VERSION = "0.1.0"
"""Of the distribution; a test holds the two together, for asking the metadata takes 15 ms."""
