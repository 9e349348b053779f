# Two commands matter: `make run` and `make test`. CI runs test, then check.
# Recipes longer than a line stand in scripts/, each with its options on top.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GOBUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false
GUIDED := $(if $(wildcard bin/kvrt.pgo),-pgo=bin/kvrt.pgo)
# What a processor without vectors of 64 bytes lacks: code in Go takes their place.
PLAIN := cpu.avx512vbmi=off,cpu.avx512vpclmulqdq=off
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

.DEFAULT_GOAL := help
.PHONY: run build profile test check lint cross guests guests-check bench bench-peers fuzz soak tools toolchain gotools python clean help

run: build ## start the daemon and send it every example envelope
	@scripts/run.sh

build: ## build bin/kvrt, one static binary
	$(GOBUILD) $(GUIDED) -ldflags '-s -w -X main.version=$(VERSION)' -o bin/kvrt ./cmd/kvrt

profile: ## take the profile that later builds are guided by: dispatches 5 to 10 % faster
	@scripts/profile.sh

test: guests-check python ## every test with the race detector; rebuilds and compares the guests
	@scripts/test.sh $(TESTFLAGS)
	@scripts/test-python.sh

check: lint guests-check cross build ## what CI adds to test; ends with a clean git tree
	go test ./internal/... ./abi/...
	go test -exec 'env GODEBUG=$(PLAIN)' ./hint/... ./internal/crc32c
	scripts/asan.sh
	scripts/run.sh --once
	@test -z "$$(git status --porcelain)" || { git status --short; echo "check: commit, ignore or remove these files"; exit 1; }

lint: tools ## gofmt, vet, staticcheck, shellcheck
	scripts/lint.sh

cross: ## build for every platform, without cgo
	@set -e; for p in $(PLATFORMS); do echo "build $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} $(GOBUILD) ./...; done

guests: toolchain ## rebuild the committed .wasm files in place
	policies/build.sh
	scripts/assemblyscript.sh

guests-check: toolchain
	policies/build.sh --check
	scripts/assemblyscript.sh --check

bench: gotools ## one table of figures against floors and budgets; BASE=REV compares two revisions
	@scripts/bench.sh

bench-peers: ## kvrt beside real KVCR from Python, in one run (installs 350 MB into bin/peers)
	@scripts/bench-peers.sh

fuzz: ## every fuzz target for FUZZTIME (20s)
	@scripts/fuzz.sh

soak: ## every soak with CALLS calls (10,000,000), the daemon's for SOAK (1m)
	@scripts/soak.sh

tools: toolchain gotools python ## install the pinned compilers and linters; KVRT_NO_INSTALL=1 only says what is missing

toolchain:
	@scripts/toolchain.sh

python: toolchain
	@scripts/python.sh

gotools:
	@mkdir -p bin/tools
	@go build -C tools -buildvcs=false -o ../bin/tools/ tool

clean: ## remove what was built here
	rm -rf bin

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile
