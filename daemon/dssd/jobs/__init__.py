"""Bulk jobs: manifests of chunks, drivers, and the publishing of chunks."""
