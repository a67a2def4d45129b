"""Which worker gets which call, decided without I/O: no grpc, no asyncio, no clock, no unseeded chance.

`manager.Pool` takes events that carry `now_s` and returns decisions; `edge.upstream.driver` feeds the first and carries
out the second. Every moment is a number of seconds on one monotonic clock of the caller's.
"""
