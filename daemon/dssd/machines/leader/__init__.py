"""The leader of a group: members, and which of them holds which stream."""
