#!/usr/bin/env bash
# Generates the stubs from protos/hair/**/*.proto: Python under protos/python, JavaScript with its types under protos/typescript. Same input,
# same output, byte for byte: `--check` generates beside them and fails on any difference. Needs grpcio-tools and mypy-protobuf (both in
# requirements.lock; PYTHON may name the interpreter that has them), and protoc-gen-es (in protos/typescript/package-lock.json).
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "$(command -v "${PYTHON:-.venv/bin/python}")")
export PATH="${python%/*}:$PATH"
es_plugin=$PWD/protos/typescript/node_modules/.bin/protoc-gen-es

new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
mkdir "$new/python" "$new/typescript"
mapfile -t files < <(cd protos && find hair -name '*.proto' | LC_ALL=C sort)

generate_python() {
  (
    cd protos
    "$python" -m grpc_tools.protoc -I. --python_out="$1" --grpc_python_out="$1" --mypy_out=quiet:"$1" --mypy_grpc_out=quiet:"$1" "${files[@]}"
  )
  # Files that declare no service get an empty gRPC module: not worth shipping.
  local proto
  for proto in "${files[@]}"; do
    grep -q '^service ' "protos/$proto" || rm -f "$1/${proto%.proto}"_pb2_grpc.py "$1/${proto%.proto}"_pb2_grpc.pyi
  done
  # Packages, and the marker that tells type checkers the stubs are complete.
  find "$1/hair" -type d -exec touch {}/__init__.py \;
  touch "$1/hair/py.typed"
}

# With the details of errors, which Python has in a distribution of Google's (grpcio-status brings it) and npm has not.
generate_typescript() {
  local common
  common=$("$python" -c 'import pathlib, google.rpc.error_details_pb2 as found; print(pathlib.Path(found.__file__).parents[2])')
  (
    cd protos
    "$python" -m grpc_tools.protoc -I. -I"$common" --plugin=protoc-gen-es="$es_plugin" --es_out="$1" --es_opt=target=js+dts,import_extension=js \
      "${files[@]}" google/rpc/error_details.proto
  )
}

publish() { # PLACE PACKAGE…: what is in $new/PLACE into protos/PLACE; or with --check compare them
  local place=$1 package
  shift
  for package in "$@"; do
    if [ "$check" ]; then
      diff -r --exclude=__pycache__ "$new/$place/$package" "protos/$place/$package" || {
        echo "protos/$place is not what protos/hair generates: run \`make protos\`" >&2
        exit 1
      }
    else
      rm -rf "protos/$place/$package"
      cp -r "$new/$place/$package" "protos/$place/$package"
    fi
  done
  echo "protos/$place is what protos/hair generates"
}

check=
[ "${1:-}" != --check ] || check=yes
generate_python "$new/python"
publish python hair
if [ -x "$es_plugin" ]; then
  generate_typescript "$new/typescript"
  publish typescript hair google
else
  echo "protos/typescript is left as it is: protoc-gen-es is not here, \`make setup\` fetches it from the npm registry" >&2
  [ "$check" ] || exit 1
fi
