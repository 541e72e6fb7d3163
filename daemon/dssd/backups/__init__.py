"""Backups: taken of a daemon that runs, checked and restored where none does."""
