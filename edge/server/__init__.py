"""Connections: what stands between the sockets and the application."""
