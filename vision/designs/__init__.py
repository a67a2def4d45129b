"""Hairline designs: a catalogue of shapes, fitted to a face by surgical rules."""

from vision.designs.fit import design_hairlines

__all__ = ["design_hairlines"]
