#!/usr/bin/env bash
# Builds the image and holds a container of it to what the Dockerfile promises: docker/test.sh STREAM [BASE]
# STREAM is the dsnet-stream of a build; BASE the image to build on. Needs a Docker engine.
set -euo pipefail
stream=${1:?usage: docker/test.sh STREAM [BASE]} base=${2:-debian:bookworm-slim}
cd "$(dirname "$0")/.."
image=dsnetd-test container=dsnetd-test-$$ port=18980 limit=$((45 * 1000 * 1000)) # beside the base, of which the official one has 75 MB
fail() { echo "docker/test.sh: $*" >&2; exit 1; }
trap 'docker rm -f "$container" >/dev/null 2>&1 || true' EXIT

docker build --network host -f docker/Dockerfile --build-arg BASE="$base" -t $image .
size=$(docker image inspect -f '{{.Size}}' $image) base_size=$(docker image inspect -f '{{.Size}}' "$base")
echo "image: $size bytes, of which the base has $base_size"
[ $((size - base_size)) -lt $limit ] || fail "the image adds more than $limit bytes to its base"

docker run -d --name "$container" --network host --read-only --cap-drop ALL --security-opt no-new-privileges \
  -e DSNET_PORT=$port -e DSNET_LISTEN=127.0.0.1 -e DSNET_DRAIN_GRACE=0 --health-interval 1s $image >/dev/null
for _ in $(seq 60); do
  health=$(docker inspect -f '{{.State.Health.Status}}' "$container")
  [ "$health" != healthy ] || break
  sleep 0.5
done
[ "$health" = healthy ] || { docker logs "$container"; fail "the container is $health"; }
pid=$(docker inspect -f '{{.State.Pid}}' "$container")
grep -q '^Uid:.10001' "/proc/$pid/status" || fail "it runs as another user"
grep -q '^CapEff:.0000000000000000' "/proc/$pid/status" || fail "it has capabilities"
grep -q '^NoNewPrivs:.1' "/proc/$pid/status" || fail "it may gain privileges"
docker exec "$container" sh -c '! touch /x 2>/dev/null && touch /data/x' || fail "what can be written is not as promised"
"$stream" sample --server "ws://127.0.0.1:$port/v1/stream" --rate max -q || fail "the sample clip did not come back whole"
docker stop -t 20 "$container" >/dev/null
status=$(docker inspect -f '{{.State.ExitCode}}' "$container")
[ "$status" = 0 ] || fail "SIGTERM ended it with $status"
echo "docker/test.sh: all as promised"
