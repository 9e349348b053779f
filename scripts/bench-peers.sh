#!/usr/bin/env bash
# kvrt beside real KVCR, in one run on this machine: what submit_hint plus
# discard_hint cost an engine's thread, what they cost inside the runtime, and what
# they cost while the daemon is stopped, paused or killed. Prints a table, which
# clients/python/README.md keeps. ROUNDS=N makes the run N times as long.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/peers.sh
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o bin/kvrt-peers ./cmd/kvrt
go test ./examples/embed -run '^$' -bench '^BenchmarkSubmitDiscard$' -benchtime "${BENCHTIME:-1s}" -count 3 >bin/peers.bench
PYTHONPATH=clients/python/src bin/peers/bin/python clients/python/bench/peers.py bin/kvrt-peers bin/peers.bench
