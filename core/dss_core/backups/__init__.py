"""Backups as they lie in a directory: who makes one, who looks after them, who restores one."""
