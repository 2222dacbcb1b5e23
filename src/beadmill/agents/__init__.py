"""Executors: coding-agent CLIs behind one contract."""
