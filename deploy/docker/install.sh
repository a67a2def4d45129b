#!/bin/sh
# install-hairmesh EXTRAS [OPTION OF PIP…]: hairmesh with these extras into /opt/hairmesh, without pip. In no image; see Dockerfile.
set -eu
extras=$1
shift
python3 -m venv --without-pip /opt/hairmesh
# Our wheels by their files: the package index is never asked for their names.
/build/bin/pip --python /opt/hairmesh/bin/python install --no-compile "$@" \
    /wheels/hairmesh_protos-*.whl "$(echo /wheels/hairmesh-*.whl)[$extras]"
# pip would write the time of installation into what it compiles, and a process without rights could not compile anything later. Some
# packages ship templates that are no Python yet: those stay as they are.
/opt/hairmesh/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/hairmesh/lib >/dev/null || true
