#!/bin/sh
# Installs Pegboard from a checkout and starts it: in a container, on a machine. Beside it, Node with npx, and uvx.
#
# Type it in a folder of its own, which need not have anything in it: mkdir pegboard; cd pegboard; then
#
#   CHECKOUT/packaging/start.sh                 install where that has not been done, then serve
#   CHECKOUT/packaging/start.sh install         install only
#   CHECKOUT/packaging/start.sh serve [OPTION…] serve only; options as those of `pegboard serve`
#   CHECKOUT/packaging/start.sh ready           exit 0 where the one that serves takes requests
#   CHECKOUT/packaging/start.sh run COMMAND…    any other command of pegboard, with the secrets read
#
# It installs into .venv there, and replaces no .venv that it has not made.
#
# PEGBOARD_HOME    where it is installed, and the folder in which it runs    [the current folder]
# PEGBOARD_SOURCE  the folder with Pegboard's sources                       [that of this script]
# PEGBOARD_CONFIG  the configuration                                        [pegboard.yaml in PEGBOARD_HOME, if there is one]
# PEGBOARD_HOST, PEGBOARD_PORT   where it listens                           [127.0.0.1, 8321]
# PYTHON           a Python of 3.11 or newer                                [python3]
#
# PEGBOARD_KEY, PEGBOARD_SECOND_KEY, PEGBOARD_TOKEN and POSTGRES_PASSWORD are secrets: give each by its variable, or by
# a file that the variable with _FILE behind its name says.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
home=$(CDPATH='' cd -- "${PEGBOARD_HOME:-.}" && pwd)
source=${PEGBOARD_SOURCE:-$(dirname -- "$here")}
python=$home/.venv/bin/python
made=$home/.venv/.made-by-pegboard
installed=$home/.venv/.pegboard-installed

fail() {
  echo "start.sh: $1" >&2
  exit 1
}

install() {
  "${PYTHON:-python3}" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    fail "Pegboard needs Python 3.11 or newer with venv and pip. Install it, or say where it is: PYTHON=/path/to/python3"
  if [ -e "$home/.venv" ] && [ ! -e "$made" ]; then
    fail "$home/.venv is there, and this script has not made it. Go to another folder, or name one: PEGBOARD_HOME=/path"
  fi
  echo "Installing Pegboard into $home/.venv" >&2
  "${PYTHON:-python3}" -m venv --clear "$home/.venv"
  touch "$made"
  "$python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$source/requirements/build.txt"
  set -- "$python" "$source/tools/uv.py" pip install --quiet --python "$python"
  "$@" --require-hashes --no-build-isolation -r "$source/requirements/server.txt"
  "$@" --no-deps --no-build-isolation "$source"
  touch "$installed"
}

# Take a secret from the file that NAME_FILE says, where NAME itself is not set.
secret() {
  eval "value=\${$1:-} file=\${$1_FILE:-}"
  if [ -z "$value" ] && [ -n "$file" ]; then
    [ -r "$file" ] || fail "$1_FILE says $file, which cannot be read."
    value=$(cat -- "$file")
  fi
  unset "$1_FILE"
  if [ -n "$value" ]; then
    export "$1=$value"
  fi
}

secrets() {
  for name in PEGBOARD_KEY PEGBOARD_SECOND_KEY PEGBOARD_TOKEN POSTGRES_PASSWORD; do
    secret "$name"
  done
  if [ -n "${POSTGRES_PASSWORD:-}" ]; then
    export PGPASSWORD="$POSTGRES_PASSWORD" # what PostgreSQL's own library reads: the address of the store needs none
  fi
}

pegboard() {
  [ -e "$installed" ] || fail "Pegboard is not installed in $home. Run: $0 install"
  secrets
  cd "$home"
  export PATH="$PATH:$home/.venv/bin" # npx, uvx: what the machine has itself comes first
  exec "$home/.venv/bin/pegboard" "$@"
}

serve() {
  set -- --host "${PEGBOARD_HOST:-127.0.0.1}" --port "${PEGBOARD_PORT:-8321}" "$@"
  if [ -n "${PEGBOARD_CONFIG:-}" ]; then
    set -- --config "$PEGBOARD_CONFIG" "$@"
  elif [ -n "${PEGBOARD_HOME:-}" ] && [ -f "$home/pegboard.yaml" ]; then
    set -- --config pegboard.yaml "$@" # who names the folder accepts what is configured in it
  fi
  pegboard serve "$@"
}

ready() {
  exec "$python" -c 'import sys, urllib.request as u
try:
    u.build_opener(u.ProxyHandler({})).open(sys.argv[1], timeout=3).close()
except OSError as error:
    sys.exit(f"not ready: {error}")' "http://127.0.0.1:${PEGBOARD_PORT:-8321}/readyz"
}

case "${1:-}" in
  "")
    [ -e "$installed" ] || install
    serve
    ;;
  install) install ;;
  ready) ready ;;
  serve)
    shift
    serve "$@"
    ;;
  run)
    shift
    pegboard "$@"
    ;;
  *) fail "'$1' is none of install, serve, ready, run." ;;
esac
