"""The shell around the pool: channels, streams and clock. Nothing here decides."""
