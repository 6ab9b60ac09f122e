//! Which of several servers behind one queue gets the next request.
//!
//! The engine says which request is next; here it is said where it runs: at the server with the
//! least `(running + 1) / weight`, the one chosen longest ago among equals. A request that runs is
//! the only measure of load that is never out of date and that a slow server cannot hide. Sources:
//! HAProxy's `leastconn` (the same formula and turns, but there an idle server always comes first);
//! Envoy's outlier detection (failures in a row, an ejection as long as the row of ejections) and
//! slow start (0.1 to 1).
//!
//! **States of a server.** `Up`; `Down` (`fall` bad answers to probes in a row; `rise` good ones
//! bring it back); `Ejected` (`eject_after` requests in a row failed there) for `eject_for` times
//! the ejections in a row, at most 8; then `Probation`: one request at a time, until one succeeds
//! (back) or fails (ejected again). A row of ejections ends when a server has stayed for longer
//! than it was last out, so one that works for a moment after each return does not start from one
//! again. `SlowStart` after every return: its weight rises from 0.1 to 1 within `slow_start`.
//!
//! **What a weight cannot do.** At weight 0.1 another server must run ten requests before a server
//! in slow start is the least loaded, and under a small limit none ever does: its caches would be
//! as cold at the end as at the start. So it is also owed its part of all requests by weight, and
//! gets one when a whole one is owed and it has none. So it has about its part under any load.
//!
//! **When all are bad.** An ejection is our own guess, made from a few requests: it orders servers
//! and never causes a refusal. The last server that is in is not ejected, but as soon as it has
//! earned it, it has no precedence over those that are: requests go to the least loaded of all.
//! So a single server is always tried (nginx does the same). With the first success all others are
//! on probation at once: what had felled every one of them may be over for every one.
//!
//! A probe is the operator's own statement of what alive means: if all are `Down` there is no
//! server, the answer is given at once (HAProxy's way), and no slot is held by a connection that
//! times out. Envoy would send the requests out all the same; but a server may say that it is down
//! to be left in peace, and an operator who does not want to depend on a probe has none.
//!
//! **Success and failure.** A failure is a connection that was not made, or not within a second in
//! which its client left, or an answer that was not HTTP, not whole, or not in time. A request that
//! the server says it has not processed (HTTP/2) is neither success nor failure. An answer below
//! 500 is a success. One of 500 or more is an error: in itself neither, as these are the application's
//! own words, and one broken page must not cost a server. But a server that has far more of them than
//! the others is ejected, so long as half of all servers are left; on probation an error decides by the
//! same comparison. See [`answers`]. A
//! request that was stopped because it ran for too long is a failure if its server has shown no life since
//! the request was sent there (a head of whatever status, to whomever, also of a hint; a good answer to a
//! probe): it looks as one that hangs does. Where it has, it is the request that is long, and who asks for such ones shall not eject servers.
//! For results that are older than an ejection or than `Down` see [`Load`].
//!
//! **Locks.** All workers share one table behind one mutex: each server's count, standing and
//! rows, and the number of choices. It is held for a few walks over at most 64 servers, without
//! allocation (but for `snapshot`), and never while anybody is called. A request takes it twice:
//! to choose and to end. When a server last showed life, and what is counted of it for operators, is beside the table,
//! without a lock.

mod answers;
mod server;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use bywash_units::{Share, Span, Time};

use self::answers::{Compared, Pace, compare};
use self::server::{Outcome, Rank, Server, Stay};
use crate::metrics::Durations;
use crate::sync::{Mutex, MutexGuard};

/// As many servers as a set of those already tried can name.
pub(crate) const MOST: usize = 64;

/// The configuration's section `health`. Each count is at least 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Good answers to probes, in a row, that bring a server back.
    pub(crate) rise: u32,
    /// Bad ones that take it out.
    pub(crate) fall: u32,
    /// Failed requests, in a row, that take it out.
    pub(crate) eject_after: u32,
    /// For how long they do, the first time.
    pub(crate) eject_for: Span,
    /// The least share of errors among recent answers that takes it out, if the others have far fewer. Zero: none.
    pub(crate) eject_share: f64,
    /// How long the weight takes from 0.1 to 1.
    pub(crate) slow_start: Span,
}

/// What went wrong with a request at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection: not a byte of the request was sent.
    Connect,
    /// No answer, or one that was late, cut off or not HTTP.
    Response,
}

/// The servers of one upstream, shared by all workers.
#[derive(Debug)]
pub(crate) struct Servers {
    options: Options,
    table: Mutex<Table>,
    /// By server: when it last showed life, in nanoseconds. One that is written over by an older one
    /// is so by what came in the same moment.
    alive: Box<[AtomicU64]>,
    /// By server; that of one that a reload keeps goes on.
    traffic: Box<[Arc<Traffic>]>,
}

/// Counts of a server's requests.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Requests that were sent on a connection that was opened for them.
    pub(crate) on_new: AtomicU64,
    /// Those on a connection that had carried another before.
    pub(crate) on_reused: AtomicU64,
    /// From the request to the head of its answer.
    pub(crate) to_head: Durations,
}

/// One server, as the status page shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ServerStatus {
    /// Requests there now.
    pub(crate) running: u32,
    pub(crate) state: State,
    /// Requests that failed there in a row.
    pub(crate) failures: u32,
    /// Ejections in a row.
    pub(crate) ejections: u32,
    /// Failed connections since the start.
    pub(crate) connect_failures: u64,
    /// Failed answers since the start.
    pub(crate) response_failures: u64,
    /// Answers of 500 or more since the start.
    pub(crate) errors: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    Up,
    /// It is back, with this weight.
    SlowStart {
        share: Share,
    },
    /// It gets one request at a time until one succeeds.
    Probation,
    Ejected {
        until: Time,
    },
    /// By probes.
    Down,
}

impl State {
    /// Every word that [`State::name`] says.
    pub(crate) const NAMES: [&str; 5] = ["up", "slow_start", "probation", "ejected", "down"];

    /// The word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::SlowStart { .. } => "slow_start",
            Self::Probation => "probation",
            Self::Ejected { .. } => "ejected",
            Self::Down => "down",
        }
    }
}

impl Servers {
    /// So many servers, at most [`MOST`], all up: at the start of the process there is nobody else
    /// who could spare them anything.
    pub(crate) fn new(count: usize, options: Options, now: Time) -> Self {
        debug_assert!(count <= MOST, "the configuration takes no more than {MOST} servers");
        Self::of((0..count).map(|_| (Server::new(now, Span::ZERO), Arc::default())), options)
    }

    /// The servers after a reload; `kept` says for each which one of these it was. One that was
    /// kept keeps its standing, a new one starts slowly.
    ///
    /// These are a new generation: requests that run here end here, and are not among the running
    /// ones there. Counting them would need one table that grows and shrinks under their feet; not
    /// counting them is wrong for as long as a request takes.
    pub(crate) fn reloaded(&self, kept: &[Option<usize>], options: Options, now: Time) -> Self {
        let table = self.lock();
        let kept = kept.iter().map(|was| {
            let before = was.and_then(|was| table.servers.get(was).zip(self.traffic.get(was)));
            match before {
                Some((server, traffic)) => (server.renewed(&options, now), Arc::clone(traffic)),
                None => (Server::new(now, options.slow_start), Arc::default()),
            }
        });
        Self::of(kept, options)
    }

    fn of(servers: impl Iterator<Item = (Server, Arc<Traffic>)>, options: Options) -> Self {
        let (servers, traffic): (Vec<_>, Vec<_>) = servers.take(MOST).unzip();
        let alive = servers.iter().map(|_| AtomicU64::new(0)).collect();
        Self {
            options,
            table: Mutex::new(Table { servers, choices: 0, pace: Pace::default() }),
            alive,
            traffic: traffic.into(),
        }
    }

    /// The server for one request. `tried`: bit n is set if this request has failed to connect to
    /// server n. `None`: every one is down or tried.
    pub(crate) fn choose(self: &Arc<Self>, now: Time, tried: u64) -> Option<Load> {
        let stay = self.lock().choose(&self.options, now, tried)?;
        Some(Load { servers: Arc::clone(self), stay, since: now, sent: now, over: false })
    }

    /// The result of a probe.
    pub(crate) fn probed(&self, server: usize, now: Time, ok: bool) {
        let mut table = self.lock();
        if server < table.servers.len() {
            if ok {
                self.shows_life(server, now);
            }
            table.change(&self.options, now, server, |server, _| {
                server.probed(&self.options, now, ok);
            });
        }
    }

    /// Every server, in the order of the configuration.
    pub(crate) fn snapshot(&self, now: Time) -> Vec<ServerStatus> {
        self.lock().servers.iter().map(|server| server.status(&self.options, now)).collect()
    }

    /// The counts of each server, in the order of the configuration.
    pub(crate) fn traffic(&self) -> &[Arc<Traffic>] {
        &self.traffic
    }

    fn shows_life(&self, server: usize, now: Time) {
        self.alive[server].store(now.as_nanos(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing under the lock leaves a server half changed: its counts are right at any point.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request at one server: it counts as running there until this is dropped, and nothing else
/// ends it. Dropped without a result (the client has left) it says nothing about the server.
///
/// An ejection, and `Down`, make the results of all requests that run at that server void: they
/// were sent to what it was before. Only their ends count.
#[derive(Debug)]
pub(crate) struct Load {
    servers: Arc<Servers>,
    stay: Stay,
    /// When the server was chosen for it.
    since: Time,
    /// When the request was sent there.
    sent: Time,
    over: bool,
}

impl Load {
    /// Its index in the configuration.
    pub(crate) const fn server(&self) -> usize {
        self.stay.server
    }

    /// The request is sent on a connection that has carried another before, or on a new one.
    pub(crate) fn is_sent(&mut self, now: Time, reused: bool) {
        self.sent = now;
        let traffic = self.traffic();
        let count = if reused { &traffic.on_reused } else { &traffic.on_new };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The head of the answer has come.
    pub(crate) fn head_came(&self, now: Time) -> Span {
        let began = now.since(self.sent);
        self.shows_life(now);
        self.traffic().to_head.observe(began);
        began
    }

    fn traffic(&self) -> &Traffic {
        &self.servers.traffic[self.stay.server]
    }

    /// A head has come, of whatever status, also of a hint: the server does not hang.
    pub(crate) fn shows_life(&self, now: Time) {
        self.servers.shows_life(self.stay.server, now);
    }

    /// That of an answer below 500. A server on probation is back with that, as the
    /// body may take hours (server-sent events); for any other only the end of the answer counts,
    /// and this costs no lock.
    pub(crate) fn answered(&mut self, now: Time) {
        if self.stay.trial {
            let (options, stay) = (&self.servers.options, &self.stay);
            self.servers.lock().change(options, now, stay.server, |server, _| {
                server.answered(options, now, stay);
            });
        }
    }

    /// The answer has come to its end.
    pub(crate) fn succeeded(self, now: Time) {
        self.end(now, |table, _, load| {
            table.pace.learn(now.since(load.since));
            table.servers[load.stay.server].answers_well(now);
            Outcome::Success
        });
    }

    /// An answer of 500 or more has come to its end.
    pub(crate) fn errs(self, now: Time) {
        self.end(now, |table, options, load| {
            let (server, took) = (load.stay.server, now.since(load.since));
            table.servers[server].answers_badly(now, took, table.pace);
            Outcome::Error(table.compared(options, server))
        });
    }

    /// It was stopped, as it has run for too long.
    pub(crate) fn ran_too_long(self, now: Time) {
        let last = &self.servers.alive[self.stay.server];
        if last.load(Ordering::Relaxed) < self.since.as_nanos() {
            self.failed(now, Failure::Response);
        }
    }

    /// The server has failed it.
    pub(crate) fn failed(self, now: Time, failure: Failure) {
        self.end(now, |_, _, _| Outcome::Failed(failure));
    }

    fn end(mut self, now: Time, outcome: impl FnOnce(&mut Table, &Options, &Self) -> Outcome) {
        self.over = true;
        let (options, stay) = (&self.servers.options, &self.stay);
        let mut table = self.servers.lock();
        let outcome = outcome(&mut table, options, &self);
        table.change(options, now, stay.server, |server, alone| {
            server.end(options, now, stay, outcome, alone);
        });
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if !self.over {
            self.servers.lock().servers[self.stay.server].leave(&self.stay);
        }
    }
}

#[derive(Debug)]
struct Table {
    servers: Vec<Server>,
    /// So many so far: tells who was chosen longest ago.
    choices: u64,
    pace: Pace,
}

impl Table {
    fn choose(&mut self, options: &Options, now: Time, tried: u64) -> Option<Stay> {
        self.credit(options, now);
        let mut best: Option<(Rank, usize)> = None;
        for (index, server) in self.servers.iter().enumerate() {
            let Some(rank) = server.rank(options, now, self.pace) else { continue };
            let untried = (tried >> index) & 1 == 0;
            if untried && best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, index));
            }
        }
        let (_, index) = best?;
        self.choices += 1;
        Some(self.servers[index].take(index, self.choices))
    }

    /// A server in slow start is owed its part, by weight, of the request that is chosen for.
    fn credit(&mut self, options: &Options, now: Time) {
        if !self.servers.iter().any(|server| server.starts_slowly(now)) {
            return;
        }
        let serving = self.servers.iter().filter(|server| server.serves());
        let all: f64 = serving.map(|server| server.weight(options, now)).sum();
        for server in self.servers.iter_mut().filter(|server| server.starts_slowly(now)) {
            server.owe(server.weight(options, now) / all);
        }
    }

    /// How a server's errors compare with those of the others. As long as it is in, it is no worse than they if half of
    /// all servers would be out without it.
    fn compared(&self, options: &Options, server: usize) -> Compared {
        if options.eject_share == 0.0 {
            return Compared::Unknown;
        }
        let others = self.servers.iter().enumerate().filter(|(index, _)| *index != server);
        let serving = others.map(|(_, other)| other).filter(|other| other.serves());
        let (share, is_in) = (self.servers[server].error_share(), self.servers[server].is_in());
        let compared =
            compare(share, serving.clone().filter_map(Server::error_share), options.eject_share);
        let too_few = is_in && 2 * serving.count() < self.servers.len();
        if too_few && compared == Compared::Worse { Compared::Unknown } else { compared }
    }

    /// Changes one server, which is told whether no other is trusted; and all the others, if none
    /// was trusted and this one now is.
    fn change(
        &mut self,
        options: &Options,
        now: Time,
        server: usize,
        act: impl FnOnce(&mut Server, bool),
    ) {
        let mut others = self.servers.iter().enumerate().filter(|(index, _)| *index != server);
        let alone = !others.any(|(_, other)| other.trusted(options));
        let changed = &mut self.servers[server];
        let was_trusted = changed.trusted(options);
        act(changed, alone);
        if alone && !was_trusted && changed.trusted(options) {
            for other in &mut self.servers {
                other.reconsider(options, now);
            }
        }
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(test)]
mod sequences;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
