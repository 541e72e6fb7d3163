"""Measurements of the running daemon."""
