"""Backups: taken from a running daemon; checked and restored without one."""
