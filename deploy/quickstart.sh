#!/usr/bin/env bash
# From a fresh Debian 12 to a streamed clip: installs the packages, builds a release, starts dsnetd, sends
# the built-in sample clip through it, and leaves the server running in the foreground.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: deploy/quickstart.sh [--once] [--port N]

  --once    stop the server after the clip; exit status 0 only if every frame came back finite
  --port N  listen on this port of 127.0.0.1 [8080]
EOF
}

once=false
port=8080
while [ $# -gt 0 ]; do
  case "$1" in
    --once) once=true ;;
    --port) [ $# -ge 2 ] || { usage >&2; exit 2; }; port=$2; shift ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

cd "$(dirname "$0")/.."
. deploy/packages.sh

step() { printf '\n=== %s\n' "$*"; }

step "packages"
install_packages "${build_packages[@]}"

step "build"
cmake -S . -B build/quickstart -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF >/dev/null
cmake --build build/quickstart

# Whether a GET is answered with 200, with nothing but the shell.
answers_ok() {
  local version code rest
  exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
  printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' "$1" >&3
  read -r -t 2 version code rest <&3 || code=
  exec 3>&-
  [ "$code" = 200 ]
}

step "server"
build/quickstart/server/dsnetd --listen 127.0.0.1 --port "$port" &
server=$!
stop_server() { # INT, because nobody routes to it: no grace
  if kill -INT "$server" 2>/dev/null; then wait "$server" || return 0; fi
}
trap stop_server EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

ready=false
for _ in $(seq 100); do
  kill -0 "$server" 2>/dev/null || { echo "quickstart: the server stopped; its last lines are above" >&2; exit 1; }
  if answers_ok /readyz 2>/dev/null; then ready=true; break; fi
  sleep 0.1
done
$ready || { echo "quickstart: the server was not ready within ten seconds" >&2; exit 1; }

step "sample clip"
status=0
build/quickstart/proto/stream/dsnet-stream sample --server "ws://127.0.0.1:$port/v1/stream" || status=$?

if $once; then
  stop_server
  exit "$status"
fi
[ "$status" -eq 0 ] || echo "quickstart: the clip did not come back whole (status $status)" >&2
step "dsnetd is listening on http://127.0.0.1:$port (stop it with Ctrl-C)"
wait "$server"
