"""Bulk jobs: manifests of chunks, their drivers, and how chunks are published."""
