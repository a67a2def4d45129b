"""The pool's shell, against fake workers on real sockets."""
