#!/usr/bin/env bash
# Brings the toolchains that rebuild the guests and run the checks, and checks
# their versions: committed .wasm files are compared byte for byte with what
# these compilers write. Prints nothing but what it does; does nothing twice.
#
# KVRT_NO_INSTALL=1 installs nothing: it says what is missing and exits 2.
set -euo pipefail

# have NAME: true when the tool behind a Debian package is there, in the
# version that is pinned.
have() {
	case $1 in
	gcc) gcc --version ;;
	libc6-dev) gcc -E -include stdlib.h -x c /dev/null ;; # the race detector needs cgo
	clang-19) clang-19 --version | grep -F 'clang version 19.1.' ;;
	lld-19) wasm-ld-19 --version | grep -F 'LLD 19.' ;;
	rustc) /usr/bin/rustc --version | grep -F 'rustc 1.63.' ;;
	cargo) /usr/bin/cargo --version ;;
	libstd-rust-dev-wasm32) ls /usr/lib/rustlib/wasm32-unknown-unknown/lib/libcore-*.rlib ;;
	wabt) wat2wasm --version ;;
	shellcheck) shellcheck --version ;;
	nodejs) node --version | grep -E '^v(1[89]|[2-9][0-9])[.]' ;;
	npm) npm --version ;;
	python3) python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ;;
	iproute2) ip -V ;; # links between the network namespaces of tests
	python3-venv) python3 -c 'import ensurepip, venv' ;;
	esac >/dev/null 2>&1
}

packages=(gcc libc6-dev clang-19 lld-19 rustc cargo libstd-rust-dev-wasm32 wabt shellcheck nodejs npm python3 python3-venv iproute2)
missing() {
	local p
	for p in "${packages[@]}"; do have "$p" || echo "$p"; done
}
say() { echo "toolchain: $*" >&2; }
stop() {
	say "$@"
	exit 2
}

mapfile -t need < <(missing)
((${#need[@]})) || exit 0

wanted="gcc with the C headers, clang and wasm-ld 19.1, rustc 1.63 in /usr/bin with its wasm32 standard library, cargo, wabt, shellcheck, Node.js 18 with npm, Python 3.11 with venv, ip of iproute2"
[[ ${KVRT_NO_INSTALL:-} != 1 ]] || stop "missing, or not in the pinned version: ${need[*]}"
command -v apt-get >/dev/null ||
	stop "missing: ${need[*]}. This machine has no apt-get; install these by hand: $wanted"
as_root=()
if ((EUID != 0)); then
	command -v sudo >/dev/null ||
		stop "missing: ${need[*]}. Run as root, install sudo, or run: apt-get install ${need[*]}"
	as_root=(sudo)
fi
if dpkg-query -W -f '${db:Status-Abbrev}' rustc-web 2>/dev/null | grep -q '^ii'; then
	stop "rustc-web is installed and conflicts with rustc 1.63; remove it first: apt-get remove rustc-web"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null >>"$log" 2>&1
}
install() { apt install -y --no-install-recommends "${need[@]}"; }

say "installing ${need[*]}"
if ! install; then # The package lists are missing or old.
	for wait in 0 10 30; do
		sleep "$wait"
		say "reading the package lists"
		apt update || true # Another broken source need not matter.
		install && break
	done
fi

mapfile -t left < <(missing)
if ((${#left[@]})); then
	tail -n 20 "$log" >&2
	stop "still missing, or not in the pinned version: ${left[*]}. Wanted (Debian 12 has them): $wanted"
fi
say "ready"
