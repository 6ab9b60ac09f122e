# Two commands for newcomers: `make demo` and `make test`. Both need a Rust toolchain and a C
# compiler (for SQLite, in the demo's shop), nothing else.
CARGO ?= cargo
# Seconds for each target of `make fuzz`.
FUZZ_SECONDS ?= 60
# Schedules for each scenario of `make shuttle`.
SCHEDULES ?= 10000

.PHONY: help demo test check test-all bench shuttle fuzz docs docs-site tools build deb static

help:
	@echo "make demo      run two shops in a flash crowd: with bywash one keeps selling, without it the other does not"
	@echo "make test      run everything that CI runs"
	@echo "make check     check formatting, lints, spelling, language, licences, known vulnerabilities, layering, Python scripts, generated pages"
	@echo "make test-all  run make test, the tutorials and the slow lab runs"
	@echo "make bench     measure decisions, ghosts, cost and attacks, next to HAProxy and nginx (if installed)"
	@echo "make shuttle   test shared state under 10,000 thread schedules for each scenario"
	@echo "make fuzz      fuzz every parser for a minute (needs rustup)"
	@echo "make docs      generate docs/reference and the dashboard from the program"
	@echo "make docs-site build the documentation as a site in target/site (needs Python)"
	@echo "make deb       build a Debian package in dist/ (installs cargo-deb)"
	@echo "make static    build a program without shared libraries in dist/ (needs musl-gcc, rustup)"

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
	$(CARGO) metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
	typos
	$(CARGO) deny --log-level error check bans licenses sources
	$(CARGO) deny --log-level error --manifest-path native/levels/python/Cargo.toml --config deny.toml check bans licenses sources
	scripts/check-advisories --self-test
	scripts/check-advisories
	scripts/check-docs
	scripts/check-language --self-test
	scripts/check-language
	scripts/write-code-map --check
	scripts/check-modules --self-test
	scripts/check-modules
	scripts/check-python
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
	$(CARGO) build --release --locked -p bywash-bench -p bywash-trials
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
	scripts/write-code-map

docs-site:
	scripts/docs-site

deb:
	scripts/make-deb

static:
	scripts/make-static

# Installs cargo-deny and typos if they are missing.
tools:
	@scripts/tools
