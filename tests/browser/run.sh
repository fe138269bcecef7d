#!/usr/bin/env bash
# Runs one of the JavaScript tests here with Node: run.sh BUILD_FOLDER TEST.mjs. What they import from npm is installed
# into the build folder. Exits with 77, for "skipped", where something is missing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1/node test=$2

skip() { echo "skipped: $*"; exit 77; }

command -v node >/dev/null && command -v npm >/dev/null || skip "nodejs and npm are not installed"
case $test in
page*) command -v chromium >/dev/null || skip "chromium is not installed" ;;
esac
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
if ! cmp -s "$here/package-lock.json" "$folder/node_modules/.lock"; then
  cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$folder"
  (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1) ||
    { tail -5 "$folder/npm.log"; skip "npm could not install the test's packages"; }
  cp "$here/package-lock.json" "$folder/node_modules/.lock"
fi
flock -u 9
DSNET_NODE_MODULES=$folder/ exec node --test "$here/$test"
