"""Hosting services behind one contract."""
