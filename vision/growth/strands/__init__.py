"""Hair grown from the person's own: its direction continued, its texture transplanted, its front drawn hair by hair."""
