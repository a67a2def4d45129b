"""Which tests stand for which scenario and which report from the field.

One table for the scenarios and one for each group of reports. `scripts/scenario_table.py` renders them as
`docs/scenarios.md`, and checks that every test named in them exists.
"""

from __future__ import annotations

from tests.scenarios.table import (
    alerts,
    diffusion,
    engines,
    face_mesh,
    grpc,
    http,
    parsing,
    pictures,
    pools,
    scenarios,
    secrets,
    supervision,
)

SCENARIOS = scenarios.ROWS

REPORTS = (
    *pictures.ROWS,
    *face_mesh.ROWS,
    *parsing.ROWS,
    *grpc.ROWS,
    *http.ROWS,
    *pools.ROWS,
    *diffusion.ROWS,
    *engines.ROWS,
    *alerts.ROWS,
    *supervision.ROWS,
    *secrets.ROWS,
)
"""By group, in the order of their ids."""
