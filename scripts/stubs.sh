#!/usr/bin/env bash
# Builds what other teams take, into the folder that is named or into dist: the Python distribution, the npm package, the descriptor set.
# docs/stubs.md says how they are used and what a version promises.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "${1:-dist}"
into=$(realpath "${1:-dist}")
export PATH="$PWD/.venv/bin:$PATH"
version=$(python -c 'import tomllib; print(tomllib.load(open("protos/pyproject.toml", "rb"))["project"]["version"])')

# Of a copy: setuptools leaves folders beside what it builds.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r protos/{LICENSE,README.md,pyproject.toml,python} "$work"
python -m build --no-isolation --outdir "$into" "$work" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
(cd protos/typescript && npm pack --loglevel=error --pack-destination "$into" >/dev/null)
buf build -o "$into/hairmesh-protos-$version.binpb"
ls -1 "$into"/hairmesh[_-]protos-"$version"*
