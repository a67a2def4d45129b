"""Tests of the hairline designs."""
