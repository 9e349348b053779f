#!/usr/bin/env bash
# vLLM's KVCR tier behind kvrt, in a virtual environment of its own.
#
#   run.sh                 drives the tier of the real vllm wheel without a GPU and
#                          without torch; 700 MB
#   run.sh serve MODEL...  installs all of vLLM and serves a model; needs a GPU
set -euo pipefail
cd "$(dirname "$0")/../.."

vllm=0.33.0
venv=bin/example-vllm
python3 -m venv "$venv"
pip=("$venv/bin/pip" --quiet --disable-pip-version-check)
if [[ ${1:-} == serve ]]; then
	shift
	"${pip[@]}" install "vllm==$vllm" kvcr==0.1.1 './clients/python[fast]'
	scripts/with-daemon.sh "$venv/bin/vllm" serve "$@" --kv-transfer-config "$(<examples/vllm/kv-transfer-config.json)"
	exit
fi

"${pip[@]}" install --no-deps -r scripts/requirements-peers.txt
"${pip[@]}" install ./clients/python
if [[ ! -d $venv/wheel/vllm ]]; then
	"${pip[@]}" download --no-deps -d "$venv/download" "vllm==$vllm"
	"$venv/bin/python" -m zipfile -e "$venv/download/"vllm-*.whl "$venv/wheel"
	rm -r "$venv/download"
fi
PYTHONPATH=clients/python/tests scripts/with-daemon.sh "$venv/bin/python" examples/vllm/main.py "$venv/wheel"
