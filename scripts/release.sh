#!/usr/bin/env bash
# Builds what is released, of a commit and not of the working tree, into the folder that is named or into dist: wheel and source distribution
# of the service, what other teams take (scripts/stubs.sh, the OpenAPI document), and SHA256SUMS. The same commit gives the same bytes.
# docs/releasing.md says when. The second argument names another commit than HEAD.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
commit=$(git rev-parse --verify "${2:-HEAD}^{commit}")
mkdir -p "${1:-dist}"
into=$(realpath "${1:-dist}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
mkdir "$work/tree" "$work/dist"
git -c tar.umask=022 archive "$commit" | tar -x -C "$work/tree"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")  # what wheels are dated by
export SOURCE_DATE_EPOCH
ln -s "$root/.venv" "$work/tree/.venv"            # what builds; it is in no distribution
[ ! -d protos/typescript/node_modules ] || ln -s "$root/protos/typescript/node_modules" "$work/tree/protos/typescript/node_modules"

cd "$work/tree"
version=$(.venv/bin/python scripts/version.py)
scripts/stubs.sh "$work/dist" >/dev/null
PYTHONPATH=protos/python .venv/bin/python -m scripts.openapi "$work/dist/hairmesh-$version.openapi.json"
.venv/bin/python -m build --no-isolation --outdir "$work/dist" . >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

# setuptools dates what is in a source distribution by the clock, and names whoever built it: packed again without both.
for archive in "$work"/dist/*.tar.gz; do
  rm -rf "$work/unpacked" && mkdir "$work/unpacked"
  tar -xzf "$archive" -C "$work/unpacked"
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+w,go-w -C "$work/unpacked" -c . \
    --transform='s,^\./,,' | gzip -9n >"$archive"
done
(cd "$work/dist" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
rm -f "$into"/hairmesh[-_]* "$into/SHA256SUMS"
mv "$work"/dist/* "$into"
echo "HairMesh $version of $(git -C "$root" log -1 --format='%h, %cs' "$commit")"
cat "$into/SHA256SUMS"
