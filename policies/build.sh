#!/usr/bin/env bash
# Builds every guest in this folder from source, or only those named.
#
#   policies/build.sh [NAME...]            write NAME/NAME.wasm in place
#   policies/build.sh --check [NAME...]    build elsewhere and compare byte for byte
#
# A guest is a folder with a manifest.json and either one .c file or src/lib.rs. No
# path and no time ends up in a module: the same sources and compilers (their versions
# are checked by scripts/toolchain.sh) give the same bytes in any folder.
set -euo pipefail
cd "$(dirname "$0")/.."

CC=${CC:-clang-19}
RUSTC=${RUSTC:-/usr/bin/rustc}

check=
if [[ ${1:-} == --check ]]; then
	check=1
	shift
fi
names=("$@")
if ((!${#names[@]})); then
	for manifest in policies/*/manifest.json; do
		names+=("$(basename "$(dirname "$manifest")")")
	done
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
go build -buildvcs=false -o "$tmp/guestbuild" ./internal/guestbuild

# The stack comes first, so that overflowing it traps instead of writing over data.
# 16 KiB are ample: nothing here recurses deeper than a payload nests.
stack=16384

build_c() { # SOURCE OUT
	"$CC" --target=wasm32 -std=c11 -O2 -mbulk-memory -ffreestanding -fno-builtin -nostdlib \
		-Wall -Wextra -Werror -Isdk/c/include \
		-Wl,--no-entry,--stack-first,-z,stack-size=$stack,--strip-all -o "$2" "$1"
}

# rustc's own idea of linking exports two globals that nobody needs, and takes the
# metadata that lies in every Rust library for a broken object.
cat >"$tmp/link" <<'END'
#!/usr/bin/env bash
args=()
for arg in "$@"; do
	case $arg in
	--export=__* | --fatal-warnings) ;;
	*) args+=("$arg") ;;
	esac
done
exec "${WASM_LD:-wasm-ld-19}" "${args[@]}"
END
chmod +x "$tmp/link"

build_rust() { # NAME FOLDER OUT
	local flags=(--edition 2021 --target wasm32-unknown-unknown -C opt-level=3 -C panic=abort
		-C codegen-units=1 -C lto=fat -C embed-bitcode=yes -C overflow-checks=off -D warnings
		-C target-feature=+bulk-memory -C "linker=$tmp/link" -C linker-flavor=wasm-ld --remap-path-prefix "$PWD=." --out-dir "$tmp")
	[[ -e $tmp/libkvrt.rlib ]] ||
		"$RUSTC" --crate-name kvrt --crate-type rlib -C metadata=kvrt "${flags[@]}" sdk/rust/src/lib.rs
	"$RUSTC" --crate-name "${1//-/_}" --crate-type cdylib -C metadata="$1" "${flags[@]}" --extern "kvrt=$tmp/libkvrt.rlib" \
		-C link-args="-zstack-size=$stack --strip-all" "$2/src/lib.rs"
	mv "$tmp/${1//-/_}.wasm" "$3"
}

differs=()
for name in "${names[@]}"; do
	dir=policies/$name
	raw=$tmp/$name.raw new=$tmp/$name.wasm
	if [[ -e $dir/src/lib.rs ]]; then
		build_rust "$name" "$dir" "$raw"
	else
		build_c "$dir"/*.c "$raw"
	fi
	"$tmp/guestbuild" -manifest "$dir/manifest.json" -o "$new" "$raw"
	if [[ -z $check ]]; then
		mv "$new" "$dir/$name.wasm"
		echo "$dir/$name.wasm: $(stat -c %s "$dir/$name.wasm") bytes"
	elif ! cmp -s "$new" "$dir/$name.wasm"; then
		differs+=("$dir/$name.wasm")
	fi
done

if ((${#differs[@]})); then
	echo "not what the sources give: ${differs[*]}" >&2
	echo "run policies/build.sh and commit the result" >&2
	exit 1
fi
