"""Tests of `edge.server`."""
