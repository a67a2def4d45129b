"""The pure pool."""
