#!/usr/bin/env bash
# Starts the daemon with the embedded guests, sends it every example envelope,
# and leaves it running until Ctrl-C. `run.sh --once` stops after the examples:
# the smoke test of `make check`.
set -euo pipefail
cd "$(dirname "$0")/.."

once=
[[ ${1:-} != --once ]] || once=1
kvrt=bin/kvrt
dir=$(mktemp -d "${TMPDIR:-/tmp}/kvrt.XXXXXX")
socket=$dir/kvrt.sock
admin=${KVRT_ADMIN:-127.0.0.1:9640}
[[ -z $once ]] || admin=127.0.0.1:0 # never in the way of a daemon that runs

set -m # a process group of its own: Ctrl-C reaches the daemon once, from stop
"$kvrt" serve --socket "$socket" --admin "$admin" &
daemon=$!
set +m
stop() {
	trap - EXIT INT TERM
	kill -TERM "$daemon" 2>/dev/null || true
	wait "$daemon" || true
	rm -rf "$dir"
}
trap stop EXIT
trap 'stop; exit 0' INT TERM

for ((i = 0; i < 300; i++)); do
	[[ ! -S $socket ]] || break
	kill -0 "$daemon" 2>/dev/null || {
		echo "run: the daemon did not start (is $admin taken? choose another with KVRT_ADMIN=HOST:PORT)" >&2
		exit 1
	}
	sleep 0.1
done

# Good envelopes exit 0 whatever became of their actions; bad ones must be
# refused whole, with exit code 1.
failed=0
for file in examples/envelopes/{good,bad}/*; do
	[[ $file == */bad/* ]] && want=1 || want=0
	echo
	echo "\$ kvrt submit --socket $socket -o table $file"
	got=0
	"$kvrt" submit --socket "$socket" -o table "$file" || got=$?
	((got == want)) || {
		echo "run: exit code $got, not $want" >&2
		failed=1
	}
done
[[ -z $once ]] || exit "$failed"

cat <<END

The daemon goes on until Ctrl-C. In another terminal, try:
  $PWD/$kvrt submit --socket $socket examples/envelopes/good/FILE
  $PWD/$kvrt dispatch examples/envelopes/good/FILE
  $PWD/$kvrt help
END
wait "$daemon"
