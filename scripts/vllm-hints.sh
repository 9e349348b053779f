#!/usr/bin/env bash
# Compares what is written for vLLM with the structs of a real vLLM: downloads its wheel
# (300 MB, into bin/) and reads v1/kv_hints/protocol.py out of it, which needs nothing
# but msgspec. Without this the test takes structs of the same published fields.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.31.0
scripts/python.sh
if ! ls bin/vllm/vllm-"$version"-*.whl >/dev/null 2>&1; then
	echo "vllm-hints: downloading vllm $version into bin/vllm" >&2
	mkdir -p bin/vllm
	bin/py/bin/pip download --quiet --disable-pip-version-check --retries 5 --no-deps --only-binary :all: --dest bin/vllm "vllm==$version" >&2
fi
KVRT_VLLM_WHEEL=$(realpath bin/vllm/vllm-"$version"-*.whl) exec go test -count=1 -run TestAgainstMsgspec -v ./hint/lower
