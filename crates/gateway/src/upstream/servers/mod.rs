//! The load balancer: chooses the server for the next request.
//!
//! The engine decides which request is next, and this module decides which server gets it: the one
//! with the lowest `(running + 1) / weight`, and among equals the least recently chosen one. The
//! number of running requests is the only measure of load that is always up to date, and a slow
//! server cannot hide it. Sources: HAProxy's `leastconn` (the same formula and tie-break, but there
//! an idle server always comes first), and Envoy. Envoy's outlier detection has consecutive
//! failures, and an ejection time proportional to the number of consecutive ejections. Envoy's slow
//! start raises the weight from 0.1 to 1.
//!
//! **States of a server.**
//! - `Up`: the server gets its share of the requests.
//! - `Down`: `fall` consecutive probes have failed. `rise` consecutive good ones bring the server
//!   back.
//! - `Ejected`: `eject_after` consecutive requests have failed there. The ejection lasts
//!   `eject_for` times the number of consecutive ejections, at most 8.
//! - `Probation` after an ejection: the server gets one request at a time, until one succeeds (the
//!   server is back) or fails (it is ejected again).
//! - `SlowStart` after every return: the weight rises from 0.1 to 1 within `slow_start`.
//!
//! The count of consecutive ejections restarts when a server has served for longer than its last
//! ejection. So the count of a server that works only for a moment after each return goes on.
//!
//! **Limits of a weight.** At weight 0.1, a server in slow start is the least loaded only if every
//! other server runs ten requests. With a small concurrency limit that never happens, and the
//! caches of the server would still be cold at the end of its slow start. So a server in slow start
//! is also credited with its share, by weight, of all requests. It gets a request when its credit
//! is a whole request and it is idle. In this way it gets about its share at any load.
//!
//! **When all servers are bad.** An ejection is an estimate from a few requests. It ranks servers,
//! and never causes a refusal. The last server that is not ejected is never ejected. But once it
//! has failed often enough for an ejection, it has no precedence over the ejected ones: requests go
//! to the least loaded server of all. So a single server is always tried (nginx does the same).
//! With the first success, all other servers go on probation at once, because the cause of the
//! failures may be over for all of them.
//!
//! A probe is the operator's own definition of health. If all servers are `Down`, no server is
//! chosen, and the request is answered with an error at once (as in HAProxy). Otherwise its slot
//! would be held until a connection attempt times out. Envoy would send the request nevertheless.
//! But a server may report that it is down in order to get no requests, and an operator who wants
//! Envoy's behaviour can configure no probes.
//!
//! **Success and failure.** These are failures:
//! - a connection that was not made;
//! - an attempt to connect that lasted a second or more, and whose client then left;
//! - a response that was not HTTP, incomplete or late.
//!
//! A request that the server reports as not processed (HTTP/2) is neither a success nor a failure.
//!
//! A response below 500 is a success. A response of 500 or more is an error, which in itself is
//! neither a success nor a failure. It comes from the application, and one broken page must not
//! eject a server. But a server with far more errors than the others is ejected, as long as half of
//! all servers are left. On probation, an error is judged by the same comparison. See [`answers`].
//!
//! A request that the engine has stopped because it ran for too long is a failure if its server has
//! shown no sign of life since it was chosen for the request. Such a server seems to hang. Signs of
//! life are a good probe, and a response head of any status for any request, including an interim
//! one. If there was a sign of life, the request itself is long. A client that sends long requests
//! must not be able to eject servers. For results that are older than an ejection or than `Down`,
//! see [`Load`].
//!
//! **Locks.** All workers share one table behind one mutex: each server's counts and standing, and
//! the number of choices. The mutex is held for a few loops over at most 64 servers, without
//! allocation (except in `snapshot`), and never during a call to other modules. A request takes it
//! twice: when its server is chosen and when it ends. The time of a server's last sign of life, and
//! the counters for operators, are outside the table, without a lock.

mod answers;
mod server;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use bywash_units::{Time, TimeSpan};

use self::answers::{Compared, ServiceTime, compare};
use self::server::{Outcome, Rank, Server, Stay};
use crate::process::sync::{Mutex, MutexGuard};
use crate::telemetry::metrics::{ServerState, ServerStatus, Traffic};

/// The maximum number of servers: the number of bits in the mask of tried servers.
pub(crate) const MOST: usize = 64;

/// The options of the configuration's section `health`. Each count is at least 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// The number of consecutive good probes that bring a server back.
    pub(crate) rise: u32,
    /// The number of consecutive bad probes that take a server out.
    pub(crate) fall: u32,
    /// The number of consecutive failed requests that eject a server.
    pub(crate) eject_after: u32,
    /// The duration of the first ejection. The n-th consecutive one lasts n times as long.
    pub(crate) eject_for: TimeSpan,
    /// The minimum fraction of errors among recent responses at which a server is ejected, if the
    /// others have far fewer. Zero disables this.
    pub(crate) eject_share: f64,
    /// The time in which the weight of a returned server rises from 0.1 to 1.
    pub(crate) slow_start: TimeSpan,
}

/// The way in which a request failed at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The connection was not made, so no byte of the request was sent.
    Connect,
    /// The response was missing, late, truncated or not HTTP.
    Response,
}

/// The servers of one upstream, shared by all workers.
#[derive(Debug)]
pub(crate) struct Servers {
    options: Options,
    table: Mutex<Table>,
    /// The time of each server's last sign of life, in nanoseconds since the start. An older time
    /// can replace a newer one only if both are from about the same moment.
    alive: Box<[AtomicU64]>,
    /// The counters of each server. A reload that keeps a server keeps its counters.
    traffic: Box<[Arc<Traffic>]>,
}

impl Servers {
    /// Creates `count` servers, at most [`MOST`], all up. They need no slow start, because at the
    /// start of the process no other server could take over their requests.
    pub(crate) fn new(count: usize, options: Options, now: Time) -> Self {
        debug_assert!(count <= MOST, "the configuration takes no more than {MOST} servers");
        Self::of((0..count).map(|_| (Server::new(now, TimeSpan::ZERO), Arc::default())), options)
    }

    /// Returns the servers after a reload. `kept` gives, for each new server, the index that it had
    /// before. A kept server keeps its standing, and a new one starts slowly.
    ///
    /// The result is a new generation. Requests that run now end in the old one, and do not count
    /// as running in the new one. Counting them would need a single table that grows and shrinks
    /// while they run. Not counting them gives wrong numbers only until these requests have ended.
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
            table: Mutex::new(Table { servers, choices: 0, service_time: ServiceTime::default() }),
            alive,
            traffic: traffic.into(),
        }
    }

    /// Chooses the server for one request. Bit n of `tried` excludes server n, to which this
    /// request has failed to connect. Returns `None` if every server is down or excluded.
    pub(crate) fn choose(self: &Arc<Self>, now: Time, tried: u64) -> Option<Load> {
        let stay = self.lock().choose(&self.options, now, tried)?;
        Some(Load { servers: Arc::clone(self), stay, since: now, sent: now, over: false })
    }

    /// Records the result of a probe of this server. Ignores an index of no server.
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

    /// Returns the status of every server, in the order of the configuration.
    pub(crate) fn snapshot(&self, now: Time) -> Vec<ServerStatus> {
        self.lock().servers.iter().map(|server| server.status(&self.options, now)).collect()
    }

    /// Returns the counters of each server, in the order of the configuration.
    pub(crate) fn traffic(&self) -> &[Arc<Traffic>] {
        &self.traffic
    }

    fn shows_life(&self, server: usize, now: Time) {
        self.alive[server].store(now.as_nanos(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // A panic under the lock leaves no server half changed: the counts are consistent at any
        // point.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request at one server. It counts as running there until this value is dropped. A value that
/// is dropped without a result, because the client has left, says nothing about the server.
///
/// An ejection, and `Down`, void the results of all requests that run at that server, because these
/// were sent before the change. Such requests then only stop counting as running.
#[derive(Debug)]
pub(crate) struct Load {
    servers: Arc<Servers>,
    stay: Stay,
    /// The time at which the server was chosen for the request.
    since: Time,
    /// The time at which the request was sent to the server. Before that time, the value is
    /// `since`.
    sent: Time,
    over: bool,
}

impl Load {
    /// Returns the server's index in the configuration.
    pub(crate) const fn server(&self) -> usize {
        self.stay.server
    }

    /// Records that the request is sent. `reused` says whether its connection has carried another
    /// request before.
    pub(crate) fn is_sent(&mut self, now: Time, reused: bool) {
        self.sent = now;
        let traffic = self.traffic();
        let count = if reused { &traffic.on_reused } else { &traffic.on_new };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that the head of the response has arrived. Returns the time since the request was
    /// sent.
    pub(crate) fn head_came(&self, now: Time) -> TimeSpan {
        let began = now.since(self.sent);
        self.shows_life(now);
        self.traffic().to_head.observe(began);
        began
    }

    fn traffic(&self) -> &Traffic {
        &self.servers.traffic[self.stay.server]
    }

    /// Records that a response head of any status has arrived, including an interim one. It shows
    /// that the server does not hang.
    pub(crate) fn shows_life(&self, now: Time) {
        self.servers.shows_life(self.stay.server, now);
    }

    /// Records a final head with a status below 500. It ends a server's probation at once, because
    /// the body may take hours (server-sent events). For other servers only the end of the response
    /// counts, and this takes no lock.
    pub(crate) fn answered(&mut self, now: Time) {
        if self.stay.trial {
            let (options, stay) = (&self.servers.options, &self.stay);
            self.servers.lock().change(options, now, stay.server, |server, _| {
                server.answered(options, now, stay);
            });
        }
    }

    /// Records that a response with a status below 500 has ended: a success.
    pub(crate) fn succeeded(self, now: Time) {
        self.end(now, |table, _, load| {
            table.service_time.learn(now.since(load.since));
            table.servers[load.stay.server].answers_well(now);
            Outcome::Success
        });
    }

    /// Records that a response with a status of 500 or more has ended: an error.
    pub(crate) fn errs(self, now: Time) {
        self.end(now, |table, options, load| {
            let (server, took) = (load.stay.server, now.since(load.since));
            table.servers[server].answers_badly(now, took, table.service_time);
            Outcome::Error(table.compared(options, server))
        });
    }

    /// Records that the engine has stopped the request because it ran for too long. That is a
    /// failure if the server has shown no sign of life since it was chosen for the request.
    pub(crate) fn ran_too_long(self, now: Time) {
        let last = &self.servers.alive[self.stay.server];
        if last.load(Ordering::Relaxed) < self.since.as_nanos() {
            self.failed(now, Failure::Response);
        }
    }

    /// Records that the server has failed the request.
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
    /// The number of choices so far. It orders the servers by when they were last chosen.
    choices: u64,
    service_time: ServiceTime,
}

impl Table {
    fn choose(&mut self, options: &Options, now: Time, tried: u64) -> Option<Stay> {
        self.credit(options, now);
        let mut best: Option<(Rank, usize)> = None;
        for (index, server) in self.servers.iter().enumerate() {
            let Some(rank) = server.rank(options, now, self.service_time) else { continue };
            let untried = (tried >> index) & 1 == 0;
            if untried && best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, index));
            }
        }
        let (_, index) = best?;
        self.choices += 1;
        Some(self.servers[index].take(index, self.choices))
    }

    /// Credits servers in slow start with their share, by weight, of the request for which a server
    /// is being chosen.
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

    /// Compares a server's fraction of errors with those of the others. A server that is not
    /// ejected never compares as worse if its ejection would leave less than half of all servers.
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

    /// Changes one server by calling `act`. The second argument of `act` says whether no other
    /// server is trusted ([`Server::trusted`]). If no server was trusted and this one now is, all
    /// other servers that are ejected or not trusted go on probation.
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
