"""What a worker knows about its own health, and how it tells."""
