#!/usr/bin/env bash
# with-daemon.sh COMMAND...: runs it beside a daemon with the embedded guests, whose
# socket KVRT_SOCKET names.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)

mkdir -p "$here/bin"
CGO_ENABLED=0 go build -C "$here" -trimpath -buildvcs=false -o bin/kvrt-example ./cmd/kvrt
dir=$(mktemp -d "${TMPDIR:-/tmp}/kvrt.XXXXXX")
export KVRT_SOCKET=$dir/kvrt.sock
"$here/bin/kvrt-example" serve --socket "$KVRT_SOCKET" --admin 127.0.0.1:0 >"$dir/log" 2>&1 &
daemon=$!
stop() {
	kill -TERM "$daemon" 2>/dev/null || true
	wait "$daemon" 2>/dev/null || true
	rm -rf "$dir"
}
trap stop EXIT
for ((i = 0; i < 300; i++)); do
	[[ ! -S $KVRT_SOCKET ]] || break
	kill -0 "$daemon" 2>/dev/null || {
		cat "$dir/log" >&2
		exit 1
	}
	sleep 0.1
done
"$@"
