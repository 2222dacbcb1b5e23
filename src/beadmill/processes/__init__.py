"""Agent sessions and command batches as folders. The only ``subprocess`` beside git/."""
