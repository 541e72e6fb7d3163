"""Metrics for Prometheus: the table of names, the collection for each scrape, and the port."""
