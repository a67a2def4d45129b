#!/usr/bin/env bash
# Generates the Python stubs under protos/python from protos/hair/**/*.proto. Same input, same output, byte for byte: `--check` generates
# beside them and fails on any difference. Needs grpcio-tools and mypy-protobuf (both in requirements.lock); PYTHON may name the
# interpreter that has them.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "$(command -v "${PYTHON:-.venv/bin/python}")")
committed=protos/python/hair

new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
mapfile -t files < <(cd protos && find hair -name '*.proto' | LC_ALL=C sort)
(
  cd protos
  PATH="$(dirname "$python"):$PATH" "$python" -m grpc_tools.protoc -I. \
    --python_out="$new" --grpc_python_out="$new" \
    --mypy_out=quiet:"$new" --mypy_grpc_out=quiet:"$new" \
    "${files[@]}"
)
# Files that declare no service get an empty gRPC module: not worth shipping.
while read -r proto; do
  grep -q '^service ' "protos/$proto" || rm -f "$new/${proto%.proto}"_pb2_grpc.py "$new/${proto%.proto}"_pb2_grpc.pyi
done < <(printf '%s\n' "${files[@]}")
# Packages, and the marker that tells type checkers the stubs are complete.
find "$new/hair" -type d -exec touch {}/__init__.py \;
touch "$new/hair/py.typed"

if [ "${1:-}" = --check ]; then
  diff -r --exclude=__pycache__ "$new/hair" "$committed" || { echo "protos/python is not what protos/hair generates: run \`make protos\`" >&2; exit 1; }
  echo "protos/python is what protos/hair generates"
else
  rm -rf "$committed"
  cp -r "$new/hair" "$committed"
  echo "generated $(find "$committed" -name '*_pb2.py' | wc -l) modules in protos/python"
fi
