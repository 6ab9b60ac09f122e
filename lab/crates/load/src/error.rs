//! Errors that prevent a run. They occur only before its start; afterwards, problems appear only in
//! the counts of the run.

use std::io;

use crate::options::Options;

/// An error that prevents a run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target is not a URL, or the URL has more than scheme, host and port.
    #[error("target `{0}`: write only http://HOST:PORT")]
    NotATarget(String),
    /// The scheme of the target is not `http`.
    #[error(
        "target `{0}`: only http:// is supported; for an https site, use the hop behind the TLS \
         proxy"
    )]
    NotHttp(String),
    /// The port of the target is missing.
    #[error("target `{0}`: the port is missing; write it as in http://127.0.0.1:8080")]
    NoPort(String),
    /// No server answers at the target.
    #[error("target `{url}` cannot be reached: {source}")]
    Unreachable {
        /// The target's URL as given.
        url: String,
        /// The error of the last attempt to connect.
        source: io::Error,
    },
    /// The offered load ρ is not above 0 and at most 1000.
    #[error("rho is {0}: it must be above 0 and at most 1000")]
    Rho(f64),
    /// The run would be over before any visitor arrives.
    #[error(
        "at rho {rho} only {sessions:.1e} visitors are expected in {lasts}: raise rho or the \
         duration"
    )]
    Nobody {
        /// The offered load ρ of the run.
        rho: f64,
        /// The expected number of visitors in the whole run.
        sessions: f64,
        /// The time during which visitors would arrive.
        lasts: bywash_units::TimeSpan,
    },
    /// Clients wait for the beginning of service, which a live client cannot see.
    #[error(
        "clients that wait for service can only be simulated: a live client waits for the answer"
    )]
    WaitsForService,
    /// The scenario changes servers or sessions, which only the simulator can do.
    #[error("servers.change and session.change can only be simulated")]
    Changes,
    /// The scenario has adversaries, which run only in the simulator.
    #[error(
        "adversaries can only be simulated: remove [[adversary]] from the scenario of a live run"
    )]
    Adversaries,
    /// The scenario has clients that return no cookies, which only the simulator has.
    #[error(
        "client.returns_cookies = false can only be simulated: all visitors of a live run return \
         cookies"
    )]
    NoCookies,
    /// The number of heads in the options is not that of the scenario's shapes.
    #[error(
        "client.shapes is {shapes}, and this live run has {heads} heads: without a head for each \
         it can only be simulated"
    )]
    Shapes {
        /// The number of shapes in the scenario.
        shapes: u32,
        /// The number of heads in the options.
        heads: usize,
    },
    /// The tag is too long, or has characters that the target would not accept in the header.
    #[error(
        "tag `{0}`: write 1 to {max} letters, digits, `-` or `_`",
        max = Options::LONGEST_TAG
    )]
    Tag(String),
    /// A class of the scenario cannot be requested over HTTP.
    #[error("class `{class}` cannot be requested: `{request}` is not a valid method and path")]
    Request {
        /// The name of the class.
        class: String,
        /// The method and path of the class.
        request: String,
    },
    /// The header of a signal is one that the load generator sets itself.
    #[error(
        "signal `{signal}` cannot be sent: the load generator sets the header `{header}` itself"
    )]
    Signal {
        /// The name of the signal.
        signal: String,
        /// The name of the header.
        header: String,
    },
    /// The operating system refused a resource that the load generator needs.
    #[error("cannot start the load generator: {0}")]
    Runtime(#[from] io::Error),
}
