"""Hairline designs: a catalogue of shapes, fitted to a face by surgical rules."""
