"""Envoy told that an upstream takes one call at a time: one connection to each, one stream on it, the rest waits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.edge_overhead import envoy_config

_LEAST_REQUEST = "type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest"
_PATIENCE_S = "60s"

POLICIES: Mapping[str, Mapping[str, Any]] = {
    "round robin": {"lb_policy": "ROUND_ROBIN"},
    "least request": {"lb_policy": "LEAST_REQUEST"},
    "least request, full scan": {
        "load_balancing_policy": {
            "policies": [
                {
                    "typed_extension_config": {
                        "name": "least_request",
                        "typed_config": {"@type": _LEAST_REQUEST, "selection_method": "FULL_SCAN"},
                    }
                }
            ]
        }
    },
}
"""Envoy's ways to choose an upstream that could suit; each binds a call to one before a slot is free."""


def one_call_config(folder: Path, listen: int, workers: Sequence[int], policy: str) -> Path:
    """The transcoder of `bench.edge_overhead` in front of the workers, one call for each at a time.

    `max_connections` counts over the whole cluster, but the first connection to every host is always allowed: 1 means
    one each. Connections belong to Envoy's threads: it has to run with `--concurrency 1`.
    """
    path = envoy_config(folder, listen, workers)
    config = json.loads(path.read_text())
    (cluster,) = config["static_resources"]["clusters"]
    cluster.update(POLICIES[policy])
    cluster["circuit_breakers"] = {
        "thresholds": [{"max_connections": 1, "max_pending_requests": 1024, "max_requests": 1024}],
        "per_host_thresholds": [{"max_connections": 1}],
    }
    (protocol,) = cluster["typed_extension_protocol_options"].values()
    protocol["explicit_http_config"]["http2_protocol_options"] = {"max_concurrent_streams": 1}
    (chain,) = config["static_resources"]["listeners"][0]["filter_chains"]
    (host,) = chain["filters"][0]["typed_config"]["route_config"]["virtual_hosts"]
    host["routes"][0]["route"]["timeout"] = _PATIENCE_S
    path.write_text(json.dumps(config))
    return path
