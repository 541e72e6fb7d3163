"""Supervision: which errors the daemon survives, and which end it."""
