"""Bulk jobs on the real log and the real files, with a process that may die after every effect."""
