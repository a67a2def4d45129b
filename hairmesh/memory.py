"""How glibc keeps the memory of a process that handles photos."""

from __future__ import annotations

import ctypes

_MIB = 1024 * 1024
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3  # malloc.h


def keep_small_return_large() -> None:
    """Keep what every call frees, give back at once what a large photo took.

    Giving the few hundred kB of a call back to the system and faulting them in again, page by page, costs as much as
    everything else the edge does in a call. Large blocks are another matter: left alone, glibc takes the size of each
    one that is freed, up to 32 MiB, as a sign that such blocks are common, puts the next ones on the heap, and a small
    block behind them keeps them there. After a photo of 39 MP a worker stayed 200 MB larger. It costs a call nothing
    that can be measured.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # another libc has its own ways
        mallopt(_M_MMAP_THRESHOLD, 4 * _MIB)
        mallopt(_M_TRIM_THRESHOLD, 32 * _MIB)
        mallopt(_M_TOP_PAD, _MIB)
