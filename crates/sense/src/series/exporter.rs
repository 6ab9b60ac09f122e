//! Reads Prometheus exporters by their URL: `node_exporter`, `mysqld_exporter`,
//! `postgres_exporter`. The table in [`super::metrics`] selects the metrics that are used.
//!
//! Each exporter has its own thread. A step of the sampler sends a query, and a later step takes
//! the response. The time of a query, the size of a response and the length of a line are bounded.
//! Therefore an exporter that hangs, responds slowly or sends gigabytes loses only its own
//! readings.
//!
//! Only the configured URL is queried. Redirects are not followed, and proxies named in the
//! environment are not used.
//!
//! Only `http://` is supported: exporters listen on a private network, and their metrics are not
//! secret. A URL with a password is refused, because the password would be sent unprotected.

use std::io::BufReader;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;
use std::{io, thread};

use bywash_terminal::text::{escaped, excerpt};
use bywash_units::TimeSpan;
use thiserror::Error;
use ureq::Agent;
use ureq::http::Uri;

use super::exposition::Sample;
use super::metrics::Gathered;
use super::resource::Reading;
use super::source::{Clock, Source, Taken, Unreadable};
use crate::access_log::Lines;

/// The maximum size of a response in bytes. With 500 processors, `node_exporter` sends 2 MiB.
const LARGEST: u64 = 16 << 20;
/// The maximum size of the head of a response in bytes.
const HEAD: usize = 16 << 10;

/// A source that reads a Prometheus exporter. Each [`Source::read`] returns the response to the
/// last query, if it has arrived, and sends the next query.
#[derive(Debug)]
pub struct Exporter {
    name: String,
    ask: SyncSender<Clock>,
    answers: Receiver<Result<Taken, Failed>>,
    is_asked: bool,
}

/// The reason why [`Exporter::new`] refuses a URL or fails.
#[derive(Debug, Error)]
pub enum Refused {
    /// The URL is not valid or not supported.
    #[error("not a URL such as http://127.0.0.1:9100/metrics")]
    NoUrl,
    /// The URL contains a password. The password would be sent unencrypted to any server that
    /// answers under this name.
    #[error("the URL has a password: bywash reads exporters without one, over a trusted network")]
    Password,
    /// The operating system cannot start another thread.
    #[error("the thread that reads the exporter cannot be started: {0}")]
    Thread(#[from] io::Error),
}

/// The reason why an exporter was not read.
#[derive(Debug, Error)]
pub enum Failed {
    /// The request failed: the exporter is unreachable, or its response is too slow or too large.
    #[error("{exporter}: {why}")]
    Http {
        /// The URL of the exporter.
        exporter: String,
        /// The message of the HTTP library, shortened and escaped.
        why: String,
    },
    /// The response has another status than 200.
    #[error("{exporter} answers with status {status}: is it an exporter, and is that its path?")]
    Status {
        /// The URL of the exporter.
        exporter: String,
        /// The HTTP status of the response.
        status: u16,
    },
    /// The response contains no metric that this crate uses. The value is the exporter's URL.
    #[error(
        "{0} has no known metric: is it node_exporter, mysqld_exporter or postgres_exporter, and \
         does it reach its database?"
    )]
    Nothing(String),
    /// The thread that reads the exporter has ended because of a bug. The value is the exporter's
    /// URL.
    #[error("the thread that reads {0} has ended")]
    Ended(String),
}

impl Exporter {
    /// Creates a source for the exporter at `url`, and starts its thread. A response that is not
    /// complete after `patience` is dropped. `patience` should be shorter than the time between two
    /// readings that counts as a gap.
    ///
    /// # Errors
    /// Returns an error if the URL is refused or the thread cannot be started.
    pub fn new(url: &str, patience: TimeSpan) -> Result<Self, Refused> {
        let url: Uri = url.parse().map_err(|_| Refused::NoUrl)?;
        let authority = url.authority().filter(|_| url.scheme_str() == Some("http"));
        let authority = authority.ok_or(Refused::NoUrl)?;
        if authority.as_str().contains('@') {
            return Err(Refused::Password);
        }
        // Leave out the query, which may contain a secret.
        let name = escaped(&format!("http://{authority}{}", url.path()));
        let (ask, asked) = sync_channel::<Clock>(1);
        let (tell, answers) = sync_channel(1);
        let asking = Asking { agent: agent(patience), url, name: name.clone() };
        // The thread ends when the source is dropped. A query that is under way ends with its
        // timeout.
        let ask_each = move || asked.iter().try_for_each(|clock| tell.send(asking.once(&clock)));
        thread::Builder::new().name("exporter".to_owned()).spawn(ask_each)?;
        Ok(Self { name, ask, answers, is_asked: false })
    }
}

impl Source for Exporter {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&mut self, clock: &Clock) -> Result<Option<Taken>, Unreadable> {
        let ended = || Unreadable::from(Failed::Ended(self.name.clone()));
        let answer = match self.answers.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => return Err(ended()),
        };
        if answer.is_some() || !self.is_asked {
            self.ask.try_send(*clock).map_err(|_| ended())?;
            self.is_asked = true;
        }
        Ok(answer.transpose()?)
    }
}

fn agent(patience: TimeSpan) -> Agent {
    let patience = patience.to_std().max(Duration::from_millis(1));
    let settings = Agent::config_builder()
        .timeout_global(Some(patience))
        .timeout_connect(Some(patience / 2))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(None)
        .max_response_header_size(HEAD)
        .user_agent("bywash")
        .accept("text/plain;version=0.0.4");
    settings.build().into()
}

/// The state of the thread that queries one exporter.
struct Asking {
    agent: Agent,
    url: Uri,
    name: String,
}

impl Asking {
    fn once(&self, clock: &Clock) -> Result<Taken, Failed> {
        let asked = clock.now();
        let answer = self.agent.get(&self.url).call().map_err(|error| self.http(&error))?;
        // The exporter read its counters at an unknown time during the query. Take the middle.
        let at = asked + clock.now().since(asked) / 2;
        let status = answer.status().as_u16();
        if status != 200 {
            return Err(Failed::Status { exporter: self.name.clone(), status });
        }
        let body = answer.into_body().into_with_config().limit(LARGEST).reader();
        let readings = readings(body).map_err(|error| self.http(&error))?;
        if readings.is_empty() {
            return Err(Failed::Nothing(self.name.clone()));
        }
        Ok(Taken { at, readings })
    }

    fn http(&self, error: &dyn std::error::Error) -> Failed {
        const MAX_ERROR_LENGTH: usize = 200;
        let why = excerpt(&error.to_string(), MAX_ERROR_LENGTH);
        Failed::Http { exporter: self.name.clone(), why }
    }
}

/// Parses the body of a response line by line, and returns a reading of each resource. A line that
/// is too long or not valid UTF-8 is skipped.
fn readings(body: impl io::Read) -> io::Result<Vec<Reading>> {
    let mut gathered = Gathered::default();
    let mut lines = Lines::new(BufReader::new(body));
    while let Some(line) = lines.next_line()? {
        let line = line.ok().and_then(|line| std::str::from_utf8(line).ok());
        if let Some(sample) = line.and_then(Sample::parse) {
            gathered.add(&sample);
        }
    }
    Ok(gathered.readings())
}
