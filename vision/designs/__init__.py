"""Hairline designs: a catalogue of shapes, fitted to a face by surgical rules, and their pictures."""

from vision.designs.draw import draw_design
from vision.designs.fit import design_hairlines

__all__ = ["design_hairlines", "draw_design"]
