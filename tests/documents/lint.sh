#!/usr/bin/env bash
# Lints proto/openapi.yaml and proto/asyncapi.yaml: lint.sh BUILD_FOLDER. The linter is installed into the build folder.
# Exits with 77, for "skipped", where npm is missing or cannot install it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1/linter

skip() { echo "skipped: $*"; exit 77; }

command -v npm >/dev/null || skip "npm is not installed"
mkdir -p "$folder"
if ! cmp -s "$here/package-lock.json" "$folder/node_modules/.lock"; then
  cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$folder"
  (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1) ||
    { tail -5 "$folder/npm.log"; skip "npm could not install the linter"; }
  cp "$here/package-lock.json" "$folder/node_modules/.lock"
fi
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true
"$folder/node_modules/.bin/redocly" lint --config "$here/redocly.yaml" --max-problems 100 \
  "$here/../../proto/openapi.yaml" "$here/../../proto/asyncapi.yaml"
