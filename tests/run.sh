#!/usr/bin/env bash
# Installs what the tests need on Debian 12, builds, and runs every test. Exits non-zero if any fails.
set -euo pipefail
cd "$(dirname "$0")/.."

. deploy/packages.sh

test_packages=(
  clang clang-format clang-tidy libclang-rt-14-dev libcmocka-dev dpkg-dev git haproxy openssl prometheus
  python3 python3-h5py python3-numpy python3-jsonschema python3-requests python3-websockets python3-yaml chromium
)

# Any kubectl will do.
command -v kubectl >/dev/null || test_packages+=(kubernetes-client)

step() { printf '\n=== %s\n' "$*"; }

build() { # PRESET [cmake arguments]
  cmake --preset "$@" -DDSNET_WERROR=ON >/dev/null
  cmake --build --preset "$1"
}

step "packages"
install_packages "${build_packages[@]}" "${test_packages[@]}"

step "format"
git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror

step "release build with GCC, warnings are errors; every test"
build release -DCMAKE_C_COMPILER=gcc
ctest --preset release

step "dev build with Clang, warnings are errors"
build dev -DCMAKE_C_COMPILER=clang

step "lint"
run-clang-tidy -quiet -j "$(nproc)" -p build/dev "^$PWD/(model|proto|server)/.*\.c\$" >build/dev/tidy.log 2>&1 ||
  { grep -E 'error:|warning:' -A4 build/dev/tidy.log; exit 1; }

step "address and undefined-behaviour sanitizers; every test"
build asan
ctest --preset asan

# OpenBLAS is not built for the sanitizer, which cannot see how its own threads wait for each other; the preset
# keeps it to one. The tests from outside are left out but for those that drive the server's threads hardest.
step "thread sanitizer; every C test, and streams from outside"
build tsan
ctest --preset tsan -LE integration
ctest --preset tsan -R '^integration_(protocol|stream)$'
