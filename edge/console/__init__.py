"""The page for people at `/console`: the pool as it is, every call to try. Static files and a few handlers for them."""
