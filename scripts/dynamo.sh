#!/usr/bin/env bash
# Brings bin/dynamo, a Python environment with Dynamo's own library, and compares
# block hashes with it. Nothing else needs it. It imports without a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=ai-dynamo-runtime==1.6.1
if [[ $(cat bin/dynamo/wanted 2>/dev/null) != "$wanted" ]]; then
	echo "dynamo: installing $wanted into bin/dynamo" >&2
	rm -rf bin/dynamo
	mkdir -p bin
	python3 -m venv bin/dynamo
	bin/dynamo/bin/pip install --quiet --disable-pip-version-check --retries 5 "$wanted" >&2
	echo "$wanted" >bin/dynamo/wanted # last: it says that everything is there
fi
exec go test -count=1 -run 'TestAgainstDynamo' -v ./hint/blockhash
