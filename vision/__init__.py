"""From one portrait photo to facts: decoding, landmarks, gates, face parsing, hairline, scale, measurements, drawing.

Knows nothing of serving: imports nothing of `edge` or `worker`.
"""
