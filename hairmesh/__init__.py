"""HairMesh: one portrait photo in, facial measurements and pictures out. The command line and what both sides share."""

__version__ = "0.1.0"
