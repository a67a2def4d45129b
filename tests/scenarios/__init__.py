"""Incidents that operators of such pools reported, on loopback; `table` says which test stands for which."""
