"""Tests of hair growth."""
