"""Other ways to do the same work, to be measured against."""
