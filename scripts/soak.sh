#!/usr/bin/env bash
# The long runs: CALLS calls (10 million) of a stock Go guest and of an AssemblyScript
# guest. Memory stays flat, and no call pays for a collection. The ordinary tests make
# some ten thousand of the same.
set -euo pipefail
cd "$(dirname "$0")/.."

export KVRT_SOAK_CALLS=${CALLS:-10000000}
go test -count 1 -timeout 0 -v -run '^TestSoak$' ./sdk/assemblyscript ./sdk/go
