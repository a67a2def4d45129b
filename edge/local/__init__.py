"""The two calls that the edge computes itself: a face in words, and named points.

The only part of the edge that uses `vision`, and only `engine` does, which is imported when the first of these calls
comes: an edge without mediapipe starts, serves everything else, and says by name what it lacks.
"""
