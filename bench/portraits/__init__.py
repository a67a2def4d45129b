"""What `bench/quality.py` measures with: pictures, marks made by eye, edits that hide a hairline, rendered eyes."""
