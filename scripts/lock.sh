#!/usr/bin/env bash
# Makes requirements.lock from pyproject.toml: every package of every extra, pinned. Our own two distributions are left out: they are
# installed from the checkout. Run it after changing a dependency; pins that still fit stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# pip-tools must find the stubs to read hairmesh's dependencies; built from a copy, so that no build folder stays in the tree.
cp -r protos "$work/protos"
"$python" -m pip wheel -q --no-deps -w "$work" "$work/protos"
# setuptools is pinned like the rest: the editable install of our own distributions builds with it.
"$python" -m piptools compile -q --all-extras --strip-extras --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
  --no-emit-options --no-annotate --find-links "$work" --unsafe-package hairmesh --unsafe-package hairmesh-protos --unsafe-package pip \
  --output-file requirements.lock pyproject.toml
# torch is pinned without its local version, so that a machine with another build of the same release can install it.
sed -i -E 's/^(torch==[0-9.]+)\+.*/\1/; /^hairmesh(-protos)? @|^hairmesh(-protos)?==/d; /^# The following packages/d; /^# (pip|hairmesh.*)$/d' requirements.lock
echo "$(grep -c == requirements.lock) packages pinned in requirements.lock"
