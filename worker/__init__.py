"""The compute side: one call at a time, deep health, gRPC. Never imports `edge`."""
