#!/usr/bin/env bash
# Builds the page's files into OUTPUT: build.sh OUTPUT. What they need from npm is installed below OUTPUT. Without npm,
# or when npm fails, the page says so and links the interfaces; the server is built either way.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
output=$1
mkdir -p "$output/npm"

plain() { # REASON
  echo "dsnetd: warning: the page is built without its viewer: $1" >&2
  sed "s|@REASON@|$1|" "$here/plain.html" >"$output/index.html"
  cp "$here/page.css" "$output/page.css"
  : >"$output/page.js"
  : >"$output/worker.js"
  exit 0
}

command -v npm >/dev/null || plain "npm was not there when the server was built."
cd "$output/npm"
if ! cmp -s "$here/package-lock.json" node_modules/.lock; then
  cp "$here/package.json" "$here/package-lock.json" "$here/.npmrc" .
  npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1 ||
    plain "npm could not install three and esbuild when the server was built."
  cp "$here/package-lock.json" node_modules/.lock
fi
# Both are found in the folder above, whatever the sources import.
NODE_PATH=$output/npm/node_modules node_modules/.bin/esbuild "$here/src/page.js" "$here/src/worker.js" --bundle --minify \
  --format=esm --target=es2022 --legal-comments=inline --log-level=warning --outdir="$output"
cp "$here/index.html" "$here/page.css" "$output"
