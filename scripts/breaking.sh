#!/usr/bin/env bash
# Whether the protos keep what every release promised: compares them with the descriptor set of each, in protos/released. BUF may name buf.
set -euo pipefail
cd "$(dirname "$0")/.."
for released in protos/released/*.binpb; do
  "${BUF:-.venv/bin/buf}" breaking --against "$released" || {
    echo "breaks what $(basename "$released" .binpb) promised: docs/stubs.md says what may change" >&2
    exit 1
  }
done
echo "protos keep what $(ls protos/released | sed 's/\.binpb$//' | paste -sd ' ') promised"
