"""From one portrait photo to facts: decoding, landmarks, gates, face parsing, hairline, scale, measurements.

And from facts to pictures: measurements drawn, hairline designs, masks, grown hair. Knows nothing of serving: imports
nothing of `edge` or `worker`.
"""
