"""Which free worker gets a request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from edge.pool.endpoint import Endpoint


def tier(endpoints: Iterable[Endpoint], tried: Collection[str] = ()) -> list[Endpoint]:
    """The online endpoints that share the work: the primaries, or the backups when no primary is online.

    Those in `tried` do not count: a retry never goes to a worker that failed it.
    """
    online = [endpoint for endpoint in endpoints if endpoint.online and endpoint.target not in tried]
    return [endpoint for endpoint in online if endpoint.primary] or online


def pick(endpoints: Sequence[Endpoint], free: Collection[str], tried: Collection[str] = ()) -> Endpoint | None:
    """The first of its tier in `endpoints` whose slot is in `free`; None: the request waits.

    The caller keeps `endpoints` in order of their last use, so that the one idle for longest is first.
    """
    return next((endpoint for endpoint in tier(endpoints, tried) if endpoint.target in free), None)
