//! Errors that prevent a run. After the start, only the counts show how it went.

use std::io;

use crate::options::Options;

/// An error that prevents a run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target is not a URL, or has more than scheme, host and port.
    #[error("target `{0}`: write only http://HOST:PORT")]
    NotATarget(String),
    /// The scheme is not http.
    #[error(
        "target `{0}`: only http:// is supported; for an https site, use the hop behind the TLS \
         proxy"
    )]
    NotHttp(String),
    /// The port is missing.
    #[error("target `{0}`: the port is missing; write it as in http://127.0.0.1:8080")]
    NoPort(String),
    /// No server answers there.
    #[error("target `{url}` cannot be reached: {source}")]
    Unreachable {
        /// The target, as given.
        url: String,
        /// The cause.
        source: io::Error,
    },
    /// The level of load is out of range.
    #[error("rho is {0}: it must be above 0 and at most 1000")]
    Rho(f64),
    /// The run is over before any visitor arrives.
    #[error(
        "at rho {rho} only {sessions:.1e} visitors are expected in {lasts}: raise rho or the \
         duration"
    )]
    Nobody {
        /// The level of load.
        rho: f64,
        /// The expected number of visitors.
        sessions: f64,
        /// How long they arrive.
        lasts: bywash_units::TimeSpan,
    },
    /// A live client cannot see the beginning of service.
    #[error(
        "clients that wait for service can only be simulated: a live client waits for the answer"
    )]
    WaitsForService,
    /// Only the simulator can change servers and sessions.
    #[error("servers.change and session.change can only be simulated")]
    Changes,
    /// Attacks run only against the simulator.
    #[error(
        "adversaries can only be simulated: remove [[adversary]] from the scenario of a live run"
    )]
    Adversaries,
    /// The tag is not valid in a header that the target would accept.
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
        /// The method and path.
        request: String,
    },
    /// The header of a signal would change the meaning of the request.
    #[error(
        "signal `{signal}` cannot be sent: the load generator sets the header `{header}` itself"
    )]
    Signal {
        /// The name of the signal.
        signal: String,
        /// The header.
        header: String,
    },
    /// The machine refused a resource that the generator needs.
    #[error("cannot start the load generator: {0}")]
    Runtime(#[from] io::Error),
}
