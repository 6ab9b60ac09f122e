//! Exporters of Prometheus, by their URL: `node_exporter`, `mysqld_exporter`, `postgres_exporter`. What of an
//! answer is looked at is [`super::metrics`]'s table.
//!
//! An exporter has a thread of its own. It is asked at one step and its answer taken at a later one, so
//! that one that hangs, trickles or answers with gigabytes costs its own reading: asking has a time, an
//! answer a size, and a line a length. It is asked where the operator said and nowhere else: no redirect is followed
//! and no proxy of the environment used.
//!
//! Only `http://`: exporters listen on a network of their own, and what they tell is no secret. A URL with
//! a password is refused, as nothing would hide it on its way.

use std::io::BufReader;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;
use std::{io, thread};

use bywash_units::Span;
use thiserror::Error;
use ureq::Agent;
use ureq::http::Uri;

use super::exposition::Sample;
use super::metrics::Gathered;
use super::resource::Reading;
use super::source::{Clock, Source, Taken, Unreadable};
use crate::access_log::Lines;

/// Bytes of an answer. Of a host with 500 processors `node_exporter` says 2 MiB.
const LARGEST: u64 = 16 << 20;
/// Bytes of an answer's head.
const HEAD: usize = 16 << 10;

/// An exporter that is asked with every step.
#[derive(Debug)]
pub struct Exporter {
    name: String,
    ask: SyncSender<Clock>,
    answers: Receiver<Result<Taken, Failed>>,
    is_asked: bool,
}

/// Why a URL is no exporter's.
#[derive(Debug, Error)]
pub enum Refused {
    /// Not one that is understood.
    #[error("it is no URL like http://127.0.0.1:9100/metrics")]
    NoUrl,
    /// It would be sent to anybody who asks in that name.
    #[error("it has a password: exporters are asked without one, over a network that is trusted")]
    Password,
    /// There can be no more threads.
    #[error("its thread cannot be started: {0}")]
    Thread(#[from] io::Error),
}

/// Why an exporter was not read.
#[derive(Debug, Error)]
pub enum Failed {
    /// It cannot be reached, or its answer does not come to an end.
    #[error("{exporter}: {why}")]
    Http {
        /// Which.
        exporter: String,
        /// As the library says it, cut and without what a terminal would obey.
        why: String,
    },
    /// It answers something else.
    #[error("{exporter} answers with status {status}: is it an exporter, and is that its path?")]
    Status {
        /// Which.
        exporter: String,
        /// Not 200.
        status: u16,
    },
    /// It answers, and with nothing that is looked at.
    #[error(
        "{0} has no metric that is known: is it node_exporter, mysqld_exporter or postgres_exporter, and \
         does it reach its database?"
    )]
    Nothing(String),
    /// This is our mistake.
    #[error("the thread that asks {0} has ended")]
    Ended(String),
}

impl Exporter {
    /// Asked there. An answer that is not whole after that time is none; it should be shorter than what
    /// is a gap between readings.
    ///
    /// # Errors
    /// If that is no such URL.
    pub fn new(url: &str, patience: Span) -> Result<Self, Refused> {
        let url: Uri = url.parse().map_err(|_| Refused::NoUrl)?;
        let authority = url.authority().filter(|_| url.scheme_str() == Some("http"));
        let authority = authority.ok_or(Refused::NoUrl)?;
        if authority.as_str().contains('@') {
            return Err(Refused::Password);
        }
        // Not its query, in which there may be a secret after all.
        let name = format!("http://{authority}{}", url.path()).escape_debug().to_string();
        let (ask, asked) = sync_channel::<Clock>(1);
        let (tell, answers) = sync_channel(1);
        let asking = Asking { agent: agent(patience), url, name: name.clone() };
        // It ends when nobody asks any more; what it waits for then ends with its patience.
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

fn agent(patience: Span) -> Agent {
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

/// What its thread needs.
struct Asking {
    agent: Agent,
    url: Uri,
    name: String,
}

impl Asking {
    fn once(&self, clock: &Clock) -> Result<Taken, Failed> {
        let asked = clock.now();
        let answer = self.agent.get(&self.url).call().map_err(|error| self.http(&error))?;
        // It looked at its counters in between.
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
        const SHOWN: usize = 200;
        let why = error.to_string().chars().take(SHOWN).collect::<String>();
        Failed::Http { exporter: self.name.clone(), why: why.escape_debug().to_string() }
    }
}

/// What an answer says, a line at a time. A line that is too long or no text is none.
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
