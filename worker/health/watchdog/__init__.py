"""A watchdog for servers outside the project, as pure decisions: no clock, no I/O, every moment is an argument.

`looks` is what a probe brings home, `server` what it proves, `policy` what to do about it, `limits` the one table.
"""
