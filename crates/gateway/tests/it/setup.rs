//! A gateway for a test, configured by the keys that operators use and stopped when the test ends.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bywash_config::{AdminAddress, Config};
use bywash_gateway::{Gateway, GatewayError, Inheritance};
use bywash_units::TimeSpan;
use serde_json::Value;

use crate::operator;
use crate::upstream::Upstream;
use crate::wire::{BOUND, Message, Wire};

/// The keys of a configuration with their values in TOML, by dotted name.
pub(crate) struct Setup(BTreeMap<String, String>);

impl Setup {
    /// Creates a configuration with mode `enforce`, one worker, no log and detailed refusals for
    /// all clients. Everything else keeps its default.
    pub(crate) fn before(upstream: &Upstream) -> Self {
        Self::before_address(upstream.address)
    }

    pub(crate) fn before_address(upstream: SocketAddr) -> Self {
        Self(BTreeMap::new())
            .set("version", "1")
            .set("mode", "'enforce'")
            .set("listen.http", "'127.0.0.1:0'")
            .set("listen.admin", "'127.0.0.1:0'")
            .set("listen.operators_key", &format!("'{}'", operator::KEY.display()))
            .set("listen.workers", "1")
            .set("upstream.server", &format!("'http://{upstream}'"))
            .set("identify.session", "'cookie:sid'")
            .set("log.access", "'off'")
            .set("answers.details", "'all'")
            // On a slow machine a request may wait for seconds, which must not change which request
            // is evicted.
            .set("scheduler.patience", "'1h'")
            // Otherwise a wait of 20 ms before the first response would count as overload, and the
            // newest requests would go first.
            .set("scheduler.signal", "'loss'")
            .set("scheduler.loss", "1")
    }

    /// Sets one key. `value` is in TOML.
    pub(crate) fn set(mut self, key: &str, value: &str) -> Self {
        self.0.insert(key.into(), value.into());
        self
    }

    /// Resets one key to its default.
    pub(crate) fn unset(mut self, key: &str) -> Self {
        self.0.remove(key);
        self
    }

    /// Configures these servers instead of the single one.
    pub(crate) fn servers(self, servers: &[String]) -> Self {
        self.set("upstream.server", &format!("{servers:?}"))
    }

    pub(crate) fn limit(self, slots: u32) -> Self {
        self.set("upstream.limit", &slots.to_string())
    }

    pub(crate) fn config(&self) -> Config {
        let mut text = String::new();
        for (key, value) in &self.0 {
            writeln!(text, "{key} = {value}").unwrap();
        }
        match Config::parse(&text, "test") {
            Ok((config, _)) => config,
            Err(problems) => panic!("{problems}\n{text}"),
        }
    }

    pub(crate) fn try_start(&self) -> Result<Running, GatewayError> {
        self.try_start_with(Inheritance::default())
    }

    /// Starts a gateway with the state of a previous one.
    pub(crate) fn try_start_with(&self, from: Inheritance) -> Result<Running, GatewayError> {
        bywash_gateway::start(self.config(), from).map(|gateway| Running(Some(gateway)))
    }

    pub(crate) fn start(&self) -> Running {
        self.try_start().expect("the gateway starts")
    }
}

/// A gateway that runs until it is dropped.
pub(crate) struct Running(Option<Gateway>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(gateway) = self.0.take() {
            gateway.stop(TimeSpan::ZERO);
        }
    }
}

impl Running {
    pub(crate) fn gateway(&self) -> &Gateway {
        self.0.as_ref().expect("it is there until it is stopped")
    }

    /// Takes the gateway out in order to stop it.
    pub(crate) fn into_gateway(mut self) -> Gateway {
        self.0.take().expect("it is there until it is stopped")
    }

    pub(crate) fn client(&self) -> Wire {
        Wire::connect(self.gateway().http())
    }

    /// Applies another configuration.
    pub(crate) fn reload(&self, setup: &Setup) -> Result<(), GatewayError> {
        self.gateway().reload(setup.config())
    }

    /// Returns a new client that has sent these bytes.
    pub(crate) fn sends(&self, bytes: impl AsRef<[u8]>) -> Wire {
        let mut client = self.client();
        client.send(bytes);
        client
    }

    /// Returns a new client that has sent a GET for this target.
    pub(crate) fn asks(&self, target: &str) -> Wire {
        self.sends(get(target))
    }

    /// Returns the response to a GET on a connection of its own.
    pub(crate) fn get(&self, target: &str) -> Message {
        self.asks(target).answer().expect("a whole answer")
    }

    /// Returns the address of the admin listener.
    pub(crate) fn admin(&self) -> SocketAddr {
        match self.gateway().admin() {
            AdminAddress::Tcp(address) => address,
            AdminAddress::Unix(path) => panic!("{} is no address", path.display()),
        }
    }

    pub(crate) fn status(&self) -> Value {
        status(self.admin())
    }

    /// Returns the number in this field of the status.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.status()[name].as_u64().unwrap_or_else(|| panic!("no {name} in the status"))
    }

    /// Returns the number of requests with this outcome, over all classes.
    pub(crate) fn outcome(&self, name: &str) -> u64 {
        self.outcomes().get(name).copied().unwrap_or_default()
    }

    pub(crate) fn outcomes(&self) -> BTreeMap<String, u64> {
        let status = self.status();
        let mut outcomes = BTreeMap::new();
        for class in status["classes"].as_array().unwrap() {
            for (name, count) in class["outcomes"].as_object().unwrap() {
                *outcomes.entry(name.clone()).or_default() += count.as_u64().unwrap();
            }
        }
        outcomes
    }

    pub(crate) fn waits_for_outcome(&self, name: &str, count: u64) {
        eventually(&format!("{count} {name}"), || self.outcome(name) == count);
    }

    pub(crate) fn metrics(&self) -> String {
        admin(self.admin(), "/metrics").text()
    }

    /// Returns the value of the sample whose name and labels are `sample`.
    pub(crate) fn metric(&self, sample: &str) -> f64 {
        let text = self.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {sample} in\n{text}")).parse().unwrap()
    }

    pub(crate) fn waits_for(&self, name: &str, count: u64) {
        eventually(&format!("{name} = {count}"), || self.count(name) == count);
    }

    /// Waits until the gateway processes no request.
    pub(crate) fn is_idle_again(&self) {
        eventually("nothing runs and nothing waits", || {
            let status = self.status();
            status["running"] == 0 && status["waiting"] == 0
        });
    }
}

/// Returns a GET as clients send it.
pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n")
}

/// Returns a POST with this body and a `Content-Length`.
pub(crate) fn post(target: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {target} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Returns the response of the admin listener.
pub(crate) fn admin(address: SocketAddr, target: &str) -> Message {
    let mut wire = Wire::connect(address);
    let fields = operator::fields(address);
    wire.send(format!("GET {target} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n"));
    wire.answer().expect("the admin listener answers")
}

pub(crate) fn status(address: SocketAddr) -> Value {
    serde_json::from_slice(&admin(address, "/v1/status").body).expect("the status is JSON")
}

/// Waits until `holds` returns true. Panics with `what` if that does not happen in time.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + BOUND;
    while !holds() {
        assert!(Instant::now() < end, "this never came about: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
