#!/usr/bin/env bash
# Brings bin/py, a Python environment with what the tests compare against:
# the field's own encoders and a real ZeroMQ publisher. The versions are pinned
# in scripts/requirements.txt. Does nothing when that file was installed already.
#
# KVRT_NO_INSTALL=1 installs nothing: it says what is missing and exits 2.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=scripts/requirements.txt
cmp -s "$wanted" bin/py/requirements.txt && exit 0
if [[ ${KVRT_NO_INSTALL:-} == 1 ]]; then
	echo "python: bin/py lacks what $wanted lists; run scripts/python.sh" >&2
	exit 2
fi

echo "python: installing into bin/py what $wanted lists" >&2
rm -rf bin/py
mkdir -p bin
python3 -m venv bin/py
bin/py/bin/pip install --quiet --disable-pip-version-check --retries 5 -r "$wanted" >&2
cp "$wanted" bin/py/requirements.txt # last: it says that everything is there
