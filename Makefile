# Two commands for newcomers: `make demo` and `make test`. Both need a Rust toolchain and a C
# compiler (for SQLite, in the demo's shop), nothing else.
CARGO ?= cargo
# Seconds for each target of `make fuzz`.
FUZZ_SECONDS ?= 60
# Schedules for each scenario of `make shuttle`.
SCHEDULES ?= 10000

.PHONY: help demo test check test-all bench shuttle fuzz docs docs-site tools build deb static

help:
	@echo "make demo      a shop that keeps selling through a flash crowd, beside one that does not"
	@echo "make test      everything that CI runs"
	@echo "make check     formatting, lints, spelling, licences, known vulnerabilities, layering, generated pages"
	@echo "make test-all  make test, and the slow lab runs"
	@echo "make bench     decisions, ghosts, cost and attacks beside HAProxy and nginx (if installed)"
	@echo "make shuttle   what threads share, on 10,000 orders of their turns for each scene"
	@echo "make fuzz      every parser against random bytes, a minute each (needs rustup)"
	@echo "make docs      write docs/reference and the dashboard anew from the program"
	@echo "make docs-site the documentation as a site in target/site (needs Python)"
	@echo "make deb       a Debian package in dist/ (installs cargo-deb)"
	@echo "make static    a program without shared libraries in dist/ (needs musl-gcc, rustup)"

build:
	$(CARGO) build --release --locked -p bywash

demo: build
	./target/release/bywash demo

test: check
	scripts/test-databases
	scripts/test-sdks
	scripts/test-sdk-databases
	scripts/test-native
	scripts/test-prometheus
	scripts/test-console

check: tools
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	typos
	$(CARGO) deny --log-level error check bans licenses sources
	$(CARGO) deny --log-level error --manifest-path native/levels/python/Cargo.toml --config deny.toml check bans licenses sources
	scripts/check-advisories --self-test
	scripts/check-advisories
	scripts/check-docs
	scripts/docs-site
	scripts/check-claims

# Checks that take longer than CI has time for: tests in which clients are given ten seconds,
# fuzzing, Miri, sanitizers and the lab.
test-all: test build shuttle
	$(CARGO) test -p bywash-gateway --test it --locked -- --ignored
	$(MAKE) -C native/sert test TIMES=100000
	native/sert/tests/teeth
	fuzz/run --replay
	fuzz/run 30
	scripts/test-sanitizers
	scripts/check-packaging target/release/bywash
	$(CARGO) build --release --locked -p bywash-shop
	scripts/test-tutorials
	scripts/lab-all out/lab

bench: build
	$(CARGO) build --release --locked -p bywash-bench
	./target/release/decision
	./target/release/learned
	./target/release/ghosts
	./target/release/cost
	./target/release/attacks

# The build has a folder of its own, because the flag applies to every crate.
shuttle:
	SCHEDULES=$(SCHEDULES) RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle \
		$(CARGO) test -p bywash-gateway --lib --locked schedules -- --nocapture --test-threads 1

fuzz:
	fuzz/run $(FUZZ_SECONDS)

docs: build
	scripts/write-docs ./target/release/bywash
	scripts/write-dashboard ./target/release/bywash > examples/grafana/bywash.json

docs-site:
	scripts/docs-site

deb:
	scripts/make-deb

static:
	scripts/make-static

# Installs cargo-deny and typos if they are missing.
tools:
	@scripts/tools
