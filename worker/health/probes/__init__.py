"""Answers of servers outside the project, read into looks: pure functions of what was received and of the time."""
