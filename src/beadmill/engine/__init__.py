"""The named journal at work: activations, waits, clocks. Knows no node."""
