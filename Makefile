# Two commands for newcomers: `make demo` and `make test`. Both need a Rust toolchain and a C
# compiler (for SQLite, in the demo's shop, and for the allocator), nothing else.
CARGO ?= cargo
# Seconds for each target of `make fuzz`.
FUZZ_SECONDS ?= 60
# Schedules for each scenario of `make shuttle`.
SCHEDULES ?= 10000
# Parts of the names of tests that compute or wait for long: `make test-slow` runs them, and `make
# test` does not.
SLOW = every_figure_of_paper a_trial_holds_back_for_its_time
# The parts of `make test-all` beyond `make test` and `make check`. `.ci/run` runs one of them each
# time.
PARTS = slow databases sdk-databases servlet native torture console prometheus sanitizers shuttle \
  fuzz packaging tutorials lab fleet

# Where `cargo install` and scripts/tools put programs.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

.PHONY: help demo test check test-all parts $(PARTS:%=test-%) test-figures program bench shuttle fuzz docs \
  docs-site tools build deb static
# Two builds at once would wait for each other.
.NOTPARALLEL:

help:
	@echo "make demo      run two shops in a flash crowd: with bywash one keeps selling, without it the other does not"
	@echo "make test      run the tests that need no database and no server of others"
	@echo "make check     check formatting, lints, spelling, language, licences, known vulnerabilities, layering, Python scripts, generated pages"
	@echo "make test-all  run make test, make check and every other test: $(PARTS:%=test-%) test-figures"
	@echo "make bench     measure decisions, ghosts, cost and attacks, next to HAProxy and nginx (if installed)"
	@echo "make shuttle   test shared state under 10,000 thread schedules for each scenario"
	@echo "make fuzz      fuzz every parser for a minute (needs rustup)"
	@echo "make docs      generate docs/reference and the dashboard from the program"
	@echo "make docs-site build the documentation as a site in target/site (needs Python)"
	@echo "make deb       build a Debian package in dist/ (installs cargo-deb)"
	@echo "make static    build a program without shared libraries in dist/ (needs musl-gcc, rustup)"

build:
	$(CARGO) build --release --locked -p bywash

# A profile of its own, which is built sooner: see Cargo.toml.
demo:
	$(CARGO) build --profile demo --locked -p bywash --no-default-features --features lab
	./target/demo/bywash demo

# The tests of all Rust packages (those with a database report that it is missing), the SDKs of the
# installed languages, and one test of the console in a browser. Many tests wait, so more of them run
# at once than there are cores. Must take at most 10 minutes from nothing on two cores, and 3 if
# everything is built.
test:
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(($$(nproc) * 2))} \
		$(CARGO) test --locked --workspace -- $(SLOW:%=--skip %)
	scripts/test-sdks python go node rust
	scripts/test-console --smoke

# Everything that reads the sources without running their tests.
check: tools
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) fmt --manifest-path sdk/tower/frameworks/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
	$(CARGO) metadata --locked --format-version 1 --manifest-path sdk/tower/frameworks/Cargo.toml >/dev/null
	typos
	$(CARGO) deny --log-level error check bans licenses sources
	$(CARGO) deny --log-level error --manifest-path native/levels/python/Cargo.toml --config deny.toml check bans licenses sources
	$(CARGO) deny --log-level error --manifest-path sdk/tower/frameworks/Cargo.toml --config deny.toml check licenses sources
	scripts/check-advisories --self-test
	scripts/check-advisories
	scripts/check-docs
	scripts/check-language --self-test
	scripts/check-language
	scripts/write-code-map --check
	scripts/write-figures --check
	scripts/check-modules --self-test
	scripts/check-modules
	scripts/check-python
	scripts/docs-site
	scripts/check-claims

test-all: test check $(PARTS:%=test-%) test-figures

# Measures the figures of docs/figures/cost.md again. CI does not run it, because it needs an idle machine.
test-figures: build
	$(CARGO) build --release --locked -p bywash-bench
	scripts/measure-cost
	scripts/write-figures --compare peers

parts:
	@echo $(PARTS)

# Tests in which clients are given ten seconds, the figures of the papers, a trial under load.
# `write_the_golden` would write files.
test-slow:
	$(CARGO) test --locked --workspace --test it -- $(SLOW)
	$(CARGO) test --locked --workspace --test it -- --ignored --skip write_the_golden

# The tests of `make test` for Rust again, with PostgreSQL, MariaDB and exporters. All of them: with
# the features of fewer packages, crates would be compiled twice.
test-databases:
	scripts/test-databases --workspace -- $(SLOW:%=--skip %)

# The SDKs and the frameworks in common use, down to the query.
test-sdk-databases: program
	scripts/test-sdk-databases python node go rust

# Gateways that share slots over three real NATS servers.
test-fleet:
	scripts/with-nats -n 3 -- $(CARGO) test --locked --workspace --test it -- on_nats::

# The same for Tomcat and WordPress.
test-servlet: program
	scripts/test-sdk-databases servlet wordpress

# libsert, the sentry and the levels for C, PHP, Apache and Python.
test-native: program
	scripts/test-native
	scripts/test-sdks levels

# libsert under 100,000 terminations of each kind, and without each of its protections.
test-torture:
	$(MAKE) -C native/sert test TIMES=100000
	native/sert/tests/teeth

# All tests of the console in a browser.
test-console: program
	scripts/test-console

# The alerts and the dashboard, with a real Prometheus.
test-prometheus: program
	scripts/test-prometheus

# The crates with `unsafe` under Miri and sanitizers.
test-sanitizers:
	scripts/test-sanitizers

test-shuttle: shuttle

# Every parser, on its committed inputs and for 30 s.
test-fuzz:
	fuzz/run --replay
	fuzz/run 30

# The units, the examples behind their servers, the pages for `man`.
test-packaging: build
	scripts/check-packaging target/release/bywash
	scripts/test-packages

# The tutorials, as their readers run them.
test-tutorials: build
	$(CARGO) build --release --locked -p bywash-shop
	scripts/test-tutorials

# Every scenario in virtual time, with two seeds to bound the time.
test-lab: build
	scripts/lab-all out/lab 2

# Builds target/debug/bywash with the features that `make test` builds it with.
program:
	$(CARGO) test --quiet --locked --workspace --no-run

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
