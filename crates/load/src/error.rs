//! Why a run cannot begin. Once it has begun, nothing but the counts tells how it went.

use std::io;

use crate::options::Options;

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target is not a URL at all, or more than scheme, host and port.
    #[error("target `{0}`: write http://host:port and nothing else")]
    NotATarget(String),
    /// The scheme is not http.
    #[error("target `{0}`: only http:// can be played; for https, play against the hop behind it")]
    NotHttp(String),
    /// The port is missing.
    #[error("target `{0}`: the port is missing, like in http://127.0.0.1:8080")]
    NoPort(String),
    /// Nobody answers there.
    #[error("target `{url}` cannot be reached: {source}")]
    Unreachable {
        /// The target, as given.
        url: String,
        /// Why.
        source: io::Error,
    },
    /// The level of load makes no sense.
    #[error("rho is {0}: it must be above 0 and at most 1000")]
    Rho(f64),
    /// It is over before anybody comes.
    #[error("at rho {rho} only {sessions:.1e} visitors are expected in {lasts}: nobody would come")]
    Nobody {
        /// The level of load.
        rho: f64,
        /// How many are expected.
        sessions: f64,
        /// How long they come.
        lasts: bywash_units::Span,
    },
    /// A live client cannot see when she is being served.
    #[error("clients that wait for service can only be simulated: a live one waits for the answer")]
    WaitsForService,
    /// Servers and sessions that change are the simulator's.
    #[error("servers.change and session.change can only be simulated")]
    Changes,
    /// Attacks are played against the simulator only.
    #[error("adversaries can only be simulated: no [[adversary]] may stand in a live scenario")]
    Adversaries,
    /// The tag cannot stand in a header that the target would take.
    #[error(
        "tag `{0}`: write 1 to {max} letters, digits, `-` or `_`",
        max = Options::LONGEST_TAG
    )]
    Tag(String),
    /// A class of the scenario cannot be asked for over HTTP.
    #[error("class `{class}` cannot be requested: `{request}` is not a method and a path")]
    Request {
        /// Its name.
        class: String,
        /// Its method and path.
        request: String,
    },
    /// A signal's header would change what the request is.
    #[error("signal `{signal}` cannot be shown: the load itself writes the header `{header}`")]
    Signal {
        /// Its name.
        signal: String,
        /// Its header.
        header: String,
    },
    /// This machine refused what the generator needs to run.
    #[error("cannot start the generator: {0}")]
    Runtime(#[from] io::Error),
}
