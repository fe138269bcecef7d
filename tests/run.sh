#!/usr/bin/env bash
# Installs what the tests need on Debian 12, builds, and runs every test. Exits non-zero if any fails.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  gcc clang cmake ninja-build pkg-config clang-format git
  libmicrohttpd-dev libuv1-dev libjansson-dev libopenblas-dev libwslay-dev libsodium-dev zlib1g-dev
  libhdf5-dev
  libcmocka-dev libclang-rt-14-dev
)

step() { printf '\n=== %s\n' "$*"; }

install_packages() {
  local missing=() p
  for p in "${packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local sudo=
  [ "$(id -u)" -eq 0 ] || sudo=sudo
  $sudo apt-get update -q
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -qy --no-install-recommends "${missing[@]}"
}

build() { # PRESET [cmake arguments]
  cmake --preset "$@" -DDSNET_WERROR=ON >/dev/null
  cmake --build --preset "$1"
}

step "packages"
install_packages

step "format"
git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror

step "release build with GCC, warnings are errors; unit tests"
build release -DCMAKE_C_COMPILER=gcc
ctest --preset release

step "dev build with Clang, warnings are errors"
build dev -DCMAKE_C_COMPILER=clang

step "address and undefined-behaviour sanitizers"
build asan
ctest --preset asan
