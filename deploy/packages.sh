# Debian 12 packages by purpose, and how to install those that are missing. Sourced by quickstart.sh and
# tests/run.sh.

build_packages=(
  gcc libc6-dev cmake ninja-build pkg-config
  libmicrohttpd-dev libuv1-dev libjansson-dev libopenblas-dev libwslay-dev libsodium-dev zlib1g-dev
  libhdf5-dev libsqlite3-dev
)
# For the page. Debian's own, unless npm came with another Node, which would not go together with it.
command -v npm >/dev/null || build_packages+=(nodejs npm)

install_packages() {
  local missing=() p sudo=
  for p in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return
  [ "$(id -u)" -eq 0 ] || sudo=sudo
  $sudo apt-get update -q
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
}
