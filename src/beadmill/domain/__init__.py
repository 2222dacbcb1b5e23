"""Pure and synchronous: no I/O, no clock, no randomness. Standard library only."""
