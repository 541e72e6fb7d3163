"""Metrics for Prometheus: one table of names, one look at the daemon a scrape, one port."""
