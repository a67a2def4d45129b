#!/usr/bin/env bash
# Generates the Python stubs under protos/python from protos/hair/**/*.proto. Same input, same output, byte for byte: CI runs it and
# expects no diff. Needs grpcio-tools and mypy-protobuf (both in requirements.lock); PYTHON may name the interpreter that has them.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
out=protos/python

find "$out/hair" -name '*_pb2*' -delete 2>/dev/null || true
mapfile -t files < <(cd protos && find hair -name '*.proto' | LC_ALL=C sort)
(
  cd protos
  python_abs=$(cd .. && cd "$(dirname "$python")" && pwd)/$(basename "$python")
  PATH="$(dirname "$python_abs"):$PATH" "$python_abs" -m grpc_tools.protoc -I. \
    --python_out=python --grpc_python_out=python \
    --mypy_out=quiet:python --mypy_grpc_out=quiet:python \
    "${files[@]}"
)
# Files that declare no service get an empty gRPC module: not worth shipping.
while read -r proto; do
  grep -q '^service ' "protos/$proto" || rm -f "$out/${proto%.proto}"_pb2_grpc.py "$out/${proto%.proto}"_pb2_grpc.pyi
done < <(printf '%s\n' "${files[@]}")
# Packages, and the marker that tells type checkers the stubs are complete.
find "$out/hair" -type d -exec sh -c 'test -e "$1/__init__.py" || : > "$1/__init__.py"' _ {} \;
: > "$out/hair/py.typed"
echo "generated $(find "$out/hair" -name '*_pb2.py' | wc -l) modules in $out"
