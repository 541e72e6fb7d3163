"""Decides when the task of a schedule runs."""
