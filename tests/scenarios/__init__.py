"""Incidents that operators of such pools reported, on loopback; `table.py` says which test stands for which."""
