"""The demo's own installation: its folder, its daemon, and the way in."""
