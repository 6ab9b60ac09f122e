//! The list of trials, with the settings of each trial.

use super::memory::Kinds;
use super::origin::Origin;
use super::pressure::{self, Client, Slots};
use super::target::Target;
use super::texts::Setup;
use super::{black_hole, connection_limit, memory, sessions, watchers};
use std::io;
use std::time::Duration;

use bywash_harness::confine::OwnedGroup;
use bywash_harness::peer::{PeerKind, Programs};
use bywash_harness::report::not_available;

/// A named attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Attack {
    /// No attack: only visitors and demanding honest clients
    Nobody,
    /// Uploads at 700 B/s
    SlowUpload,
    /// Answers of 5 MB that are read at 700 B/s
    SlowRead,
    /// One HTTP/2 connection with 24 uploads of 60 bytes every 0.1 s
    OneConnection,
    /// Connections that make a proxy hold memory, which is limited to 256 MiB
    Memory,
    /// Idle connections, as many as the limit allows
    IdleSeats,
    /// Invented session cookies
    SessionEviction,
    /// A server that answers 500 at once next to one that works
    BlackHole,
    /// Watchers at the operators' listener
    Watchers,
}

impl Attack {
    /// All attacks, in the order of the report.
    pub(super) const ALL: [Self; 9] = [
        Self::Nobody,
        Self::SlowUpload,
        Self::SlowRead,
        Self::OneConnection,
        Self::Memory,
        Self::IdleSeats,
        Self::SessionEviction,
        Self::BlackHole,
        Self::Watchers,
    ];

    /// Returns the trials of this attack. The largest of them have `many` connections.
    pub(super) fn trials(self, many: usize) -> Vec<Trial> {
        let trial = |label: &str, what| Trial { label: label.to_owned(), what };
        match self {
            Self::Nobody => vec![trial("nobody", What::Slots(Slots::Nobody))],
            Self::SlowUpload => {
                let stream = ("1 HTTP/2 connection, 100 streams", Slots::uploading_streams());
                let mut trials = slow("slow-upload", Client::Upload, many, stream);
                let rest = slow_http1(Client::UploadRest, false, 100, 100);
                let label = "slow-upload after 300 KB: 100 connections, 100 addresses";
                trials.push(trial(label, rest));
                trials
            }
            Self::SlowRead => {
                let stream = ("1 HTTP/2 connection, 60 streams", Slots::reading_streams());
                slow("slow-read", Client::Read, many, stream)
            }
            Self::OneConnection => {
                vec![trial("one-connection", What::Slots(Slots::one_connection()))]
            }
            Self::Memory => vec![
                memory("every kind", Kinds::Every, 1000),
                memory("every kind", Kinds::Every, many),
                memory("heads, bodies and chunks", Kinds::Bodies, many),
            ],
            Self::IdleSeats => vec![
                trial("idle-seats: 1 address", What::ConnectionLimit { addresses: 1 }),
                trial("idle-seats: 100 addresses", What::ConnectionLimit { addresses: 100 }),
            ],
            Self::SessionEviction => vec![
                trial("session-eviction: 1 address", What::Sessions { addresses: 1 }),
                trial("session-eviction: 100 addresses", What::Sessions { addresses: 100 }),
            ],
            Self::BlackHole => vec![trial("black-hole", What::BlackHole)],
            Self::Watchers => vec![trial("watchers", What::Watchers)],
        }
    }
}

fn slow_http1(client: Client, tls: bool, connections: usize, addresses: usize) -> What {
    What::Slots(Slots::Http1 { client, tls, connections, addresses })
}

/// Returns three trials of a slow attack: `client` with HTTP/1.1, `client` with TLS, and the HTTP/2
/// connection `stream`.
fn slow(name: &str, client: Client, many: usize, stream: (&str, Slots)) -> Vec<Trial> {
    let http1 = |tls, connections, addresses| {
        let what = slow_http1(client, tls, connections, addresses);
        let tls = if tls { ", TLS" } else { "" };
        let from = if connections == 1 { String::new() } else { from(addresses) };
        Trial { label: format!("{name}: {}{from}{tls}", count(connections)), what }
    };
    vec![
        http1(false, 1, 1),
        http1(false, 100, 1),
        http1(false, 100, 100),
        http1(false, many, 1),
        http1(false, many, 1000),
        http1(true, 100, 100),
        Trial { label: format!("{name}: {}", stream.0), what: What::Slots(stream.1) },
    ]
}

fn memory(what: &str, kinds: Kinds, connections: usize) -> Trial {
    let label = format!("memory: {}, {what}", count(connections));
    Trial { label, what: What::Memory { kinds, connections } }
}

fn count(connections: usize) -> String {
    match connections {
        1 => "1 connection".to_owned(),
        1000.. => format!("{},{:03} connections", connections / 1000, connections % 1000),
        _ => format!("{connections} connections"),
    }
}

fn from(addresses: usize) -> String {
    match addresses {
        1 => ", 1 address".to_owned(),
        1000.. => format!(", {},{:03} addresses", addresses / 1000, addresses % 1000),
        _ => format!(", {addresses} addresses"),
    }
}

/// One trial: an attack with its settings, shown as one row of a table.
#[derive(Debug, Clone)]
pub(super) struct Trial {
    /// Label of the row in the table.
    pub(super) label: String,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Slots(Slots),
    Memory { kinds: Kinds, connections: usize },
    ConnectionLimit { addresses: usize },
    Sessions { addresses: usize },
    BlackHole,
    Watchers,
}

/// The kind of table that shows a trial, which determines the content of its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Visitors' useful work relative to before the attack, whether an honest upload and an honest
    /// slow reader were served, and the fraction served of an office's requests.
    Slots,
    /// Whether the program survived, its peak memory, the 99th percentile of response times, and
    /// the fraction of requests served.
    Memory,
    /// One fraction of successes. For watchers there are three fractions: of probes of `/livez`, of
    /// probes of `/metrics`, and of `bywash bypass on`.
    Shares,
}

/// Parameters that all trials of a run share.
pub(super) struct Run<'a> {
    /// Paths of the programs under test.
    pub(super) programs: &'a Programs,
    /// Duration of each attack.
    pub(super) length: Duration,
    /// Number of connections of the largest attack.
    pub(super) many: usize,
    /// Lines that replace or extend bywash's configuration.
    pub(super) extra: &'a str,
}

/// Number of client connections that are allowed in addition to the hostile ones.
pub(super) const BESIDE: usize = 1000;
/// Maximum number of slow readers with nginx. nginx writes their answers to files, and more would
/// fill a disk.
const MOST_FILES: usize = 200;

impl Trial {
    /// Returns the kind of table that shows this trial.
    pub(super) fn shown(&self) -> Shown {
        match self.what {
            What::Slots(_) => Shown::Slots,
            What::Memory { .. } => Shown::Memory,
            What::ConnectionLimit { .. }
            | What::Sessions { .. }
            | What::BlackHole
            | What::Watchers => Shown::Shares,
        }
    }

    /// Returns whether the trial is meaningful for the program `kind`.
    pub(super) fn applies_to(&self, kind: PeerKind) -> bool {
        match self.what {
            What::Sessions { .. } | What::Watchers => kind == PeerKind::Bywash,
            What::Slots(Slots::Http1 { client: Client::Read, connections, .. }) => {
                kind != PeerKind::Nginx || connections <= MOST_FILES
            }
            What::Slots(_)
            | What::Memory { .. }
            | What::ConnectionLimit { .. }
            | What::BlackHole => true,
        }
    }

    /// Starts `kind` and attacks it once. Returns the measured values in the order of the table's
    /// cells.
    pub(super) fn measure(&self, kind: PeerKind, run: &Run<'_>) -> io::Result<Vec<f64>> {
        let service = match self.what {
            What::Sessions { .. } => Duration::ZERO,
            _ => pressure::SERVICE,
        };
        let origin = Origin::start(service, 200)?;
        let mut setup = Setup {
            servers: vec![origin.port()],
            connections: (run.many + BESIDE) as u32,
            extra: run.extra.to_owned(),
            ..Setup::default()
        };
        let start = |setup: &Setup, group| Target::start(kind, run.programs, setup, group);
        match self.what {
            What::Slots(slots) => {
                let target = start(&setup, None)?;
                pressure::measure(target.ports(), slots, run.length)
            }
            What::Memory { kinds, connections } => {
                let group = OwnedGroup::new(memory::MOST);
                if let Err(e) = &group {
                    let why = format!("{e}; the peak memory is judged instead of survival");
                    not_available("a control group of 256 MiB", &why);
                }
                let group = group.ok();
                let target = start(&setup, group.as_ref().map(OwnedGroup::group))?;
                memory::measure(&target, group.as_ref(), (kinds, connections), run.length)
            }
            What::ConnectionLimit { addresses } => {
                setup.connections = connection_limit::CONNECTION_LIMIT;
                connection_limit::measure(&start(&setup, None)?, addresses)
            }
            What::Sessions { addresses } => {
                setup.sessions = Some(sessions::TABLE);
                sessions::measure(&start(&setup, None)?, addresses)
            }
            What::BlackHole => {
                let failing = Origin::start(Duration::ZERO, 500)?;
                setup.servers.push(failing.port());
                setup.checks = true;
                black_hole::measure(&start(&setup, None)?, run.length)
            }
            What::Watchers => watchers::measure(&start(&setup, None)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_say_how_many_connections_come_from_how_many_addresses() {
        let trials = Attack::SlowUpload.trials(8800);
        let labels: Vec<&str> = trials.iter().map(|trial| trial.label.as_str()).collect();
        assert_eq!(labels[0], "slow-upload: 1 connection");
        assert_eq!(labels[4], "slow-upload: 8,800 connections, 1,000 addresses");
        assert_eq!(labels[5], "slow-upload: 100 connections, 100 addresses, TLS");
    }

    #[test]
    fn peers_have_no_sessions_and_nginx_gets_no_thousands_of_readers() {
        let applies = |attack: Attack, kind| attack.trials(8800).iter().all(|t| t.applies_to(kind));
        assert!(
            applies(Attack::SlowRead, PeerKind::Haproxy)
                && !applies(Attack::SlowRead, PeerKind::Nginx)
        );
        assert!(!applies(Attack::SessionEviction, PeerKind::Haproxy));
        assert!(Attack::ALL.iter().all(|attack| applies(*attack, PeerKind::Bywash)));
    }
}
