"""The pool on virtual time: whole incidents in milliseconds."""
