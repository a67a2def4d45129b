"""Stand-ins for the other side of a wire, speaking the real protocol over real sockets."""
