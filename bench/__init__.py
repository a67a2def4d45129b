"""Figures: each module prints a table for people and, as its last line, one JSON object."""
