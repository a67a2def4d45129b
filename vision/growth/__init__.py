"""Hair grown into a photo: backends behind one interface, compositing, proof."""
