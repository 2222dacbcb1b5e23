"""A model without a model: real provider wires over HTTP on loopback, scripted by the scripted agent's scenario file."""
