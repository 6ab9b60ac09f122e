//! The state of one server, and how requests and probes change it. See [`super`].

use bywash_units::{Ratio, Time, TimeSpan};

use super::answers::{Answers, Compared, ServiceTime};
use super::{Failure, Options, ServerState, ServerStatus};

/// The number of consecutive ejections beyond which ejections do not get longer.
const LONGEST_ROW: u32 = 8;

/// The weight at the beginning of a slow start.
const LEAST_WEIGHT: f64 = 0.1;

#[derive(Debug)]
pub(super) struct Server {
    /// The number of requests that run at this server. Each has a `Load`.
    running: u32,
    /// The number of the choice that last selected this server; 0 for none.
    last: u64,
    /// The number of requests that the server is owed while it starts slowly, at most 2.
    owed: f64,
    /// Whether the server is up according to the probes.
    alive: bool,
    /// The number of consecutive probes that contradict `alive`.
    contrary: u32,
    standing: Standing,
    /// The number of the generation, which every ejection and every `Down` increments.
    generation: u32,
    /// The number of running requests of this generation that were sent here while the server was
    /// ejected or on probation.
    trials: u32,
    /// The number of consecutive failed requests.
    failures: u32,
    /// The number of consecutive ejections.
    ejections: u32,
    answers: Answers,
    connect_failures: u64,
    response_failures: u64,
    errors: u64,
}

/// The standing of a server according to the results of its requests. "Ejected until a time" and
/// "on probation since that time" are the same standing, so time alone changes nothing.
#[derive(Clone, Copy, Debug)]
enum Standing {
    /// The server is in since the time `since`: neither ejected nor on probation. It starts slowly
    /// until `warm`, when its weight is 1.
    In {
        since: Time,
        warm: Time,
    },
    Out {
        until: Time,
    },
}

/// The rank of a server for the next request. The server with the lowest rank is chosen.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct Rank {
    doubtful: bool,
    load: f64,
    last: u64,
}

/// The facts about one request at a server that are needed when the request ends.
#[derive(Debug)]
pub(super) struct Stay {
    pub(super) server: usize,
    generation: u32,
    /// Whether the server was ejected or on probation when the request was sent to it.
    pub(super) trial: bool,
}

/// The result of a request at its server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Success,
    /// The response had a status of 500 or more. The value compares the server's errors with those
    /// of the others.
    Error(Compared),
    Failed(Failure),
}

impl Server {
    pub(super) fn new(now: Time, slow_start: TimeSpan) -> Self {
        Self {
            running: 0,
            last: 0,
            owed: 0.0,
            alive: true,
            contrary: 0,
            standing: Standing::In { since: now, warm: now + slow_start },
            generation: 0,
            trials: 0,
            failures: 0,
            ejections: 0,
            answers: Answers::default(),
            connect_failures: 0,
            response_failures: 0,
            errors: 0,
        }
    }

    /// Returns the state of this server for a new generation of requests after a reload. The count
    /// of failures restarts, because the last server that was not ejected may no longer be the
    /// last.
    pub(super) fn renewed(&self, options: &Options, now: Time) -> Self {
        let standing = match self.standing {
            Standing::In { since, warm } => {
                Standing::In { since, warm: warm.min(now + options.slow_start) }
            }
            Standing::Out { until } => {
                let longest = now + options.eject_for * self.ejections.into();
                Standing::Out { until: until.min(longest) }
            }
        };
        Self { running: 0, last: 0, generation: 0, trials: 0, failures: 0, standing, ..*self }
    }

    pub(super) const fn is_in(&self) -> bool {
        matches!(self.standing, Standing::In { .. })
    }

    /// Returns whether neither probes nor requests have taken the server out.
    pub(super) const fn serves(&self) -> bool {
        self.alive && self.is_in()
    }

    /// Returns whether the server serves and has fewer consecutive failures than an ejection takes.
    /// The last server that is not ejected stays so at that number of failures, but is no longer
    /// trusted.
    pub(super) const fn trusted(&self, options: &Options) -> bool {
        self.serves() && self.failures < options.eject_after
    }

    pub(super) fn starts_slowly(&self, now: Time) -> bool {
        self.alive && matches!(self.standing, Standing::In { warm, .. } if now < warm)
    }

    pub(super) fn weight(&self, options: &Options, now: Time) -> f64 {
        match self.standing {
            Standing::In { warm, .. } if now < warm => {
                let left = warm.since(now).as_secs_f64() / options.slow_start.as_secs_f64();
                (1.0 - (1.0 - LEAST_WEIGHT) * left).max(LEAST_WEIGHT)
            }
            // On probation, the server gets one request at a time, which needs no lower weight.
            Standing::In { .. } | Standing::Out { .. } => 1.0,
        }
    }

    /// Adds `part` of a request to the server's credit. The credit is at most two requests, so that
    /// the server does not later make up for the requests that it missed while it was busy.
    pub(super) fn owe(&mut self, part: f64) {
        self.owed = (self.owed + part).min(2.0);
    }

    /// Returns the rank of the server. Returns `None` if it is down.
    pub(super) fn rank(
        &self,
        options: &Options,
        now: Time,
        service_time: ServiceTime,
    ) -> Option<Rank> {
        if !self.alive {
            return None;
        }
        let doubtful = match self.standing {
            Standing::In { .. } => !self.trusted(options),
            Standing::Out { until } => now < until || self.trials > 0,
        };
        let due = self.owed >= 1.0 && self.running == 0;
        let running = f64::from(self.running + 1) + self.answers.running(now, service_time);
        let load = running / self.weight(options, now);
        Some(Rank { doubtful, load: if due { 0.0 } else { load }, last: self.last })
    }

    pub(super) fn take(&mut self, server: usize, choice: u64) -> Stay {
        let trial = !self.is_in();
        self.running += 1;
        self.trials += u32::from(trial);
        self.owed = (self.owed - 1.0).max(0.0);
        self.last = choice;
        Stay { server, generation: self.generation, trial }
    }

    /// Records that a request that was sent here on probation has got the head of a response.
    pub(super) fn answered(&mut self, options: &Options, now: Time, stay: &Stay) {
        if stay.generation == self.generation {
            self.succeed(options, now);
        }
    }

    /// Ends a request. Returns false if an ejection or `Down` has voided its result.
    pub(super) const fn leave(&mut self, stay: &Stay) -> bool {
        // A stay is ended once, by the load that holds it, so neither count goes below zero.
        self.running -= 1;
        let counts = stay.generation == self.generation;
        if counts && stay.trial {
            self.trials -= 1;
        }
        counts
    }

    /// Ends a request with this outcome. `alone` says whether no other server is trusted.
    pub(super) fn end(
        &mut self,
        options: &Options,
        now: Time,
        stay: &Stay,
        outcome: Outcome,
        alone: bool,
    ) {
        let counts = self.leave(stay);
        if let Outcome::Failed(failure) = outcome {
            self.count(failure);
        }
        match outcome {
            _ if !counts => {}
            Outcome::Success => self.succeed(options, now),
            Outcome::Failed(_) => self.fail(options, now, alone),
            Outcome::Error(compared) => self.err(options, now, compared, alone),
        }
    }

    const fn count(&mut self, failure: Failure) {
        match failure {
            Failure::Connect => self.connect_failures += 1,
            Failure::Response => self.response_failures += 1,
        }
    }

    fn succeed(&mut self, options: &Options, now: Time) {
        self.failures = 0;
        if !self.is_in() {
            self.enter(options, now);
        }
    }

    fn fail(&mut self, options: &Options, now: Time, alone: bool) {
        self.failures = self.failures.saturating_add(1);
        match self.standing {
            Standing::In { .. } if self.failures >= options.eject_after && !alone => {
                self.eject(options, now);
            }
            Standing::Out { until } if now >= until => self.eject(options, now),
            Standing::In { .. } | Standing::Out { .. } => {}
        }
    }

    /// Handles a response with a status of 500 or more. The request may be at fault, so the
    /// response counts against the server only in the comparison with the other servers.
    fn err(&mut self, options: &Options, now: Time, compared: Compared, alone: bool) {
        match (self.standing, compared) {
            (Standing::In { .. }, Compared::Worse) if !alone => self.eject(options, now),
            (Standing::Out { until }, Compared::Worse) if now >= until => self.eject(options, now),
            // The server is no worse than those that are in, so its probation ends.
            (Standing::Out { .. }, Compared::Alike) => self.enter(options, now),
            (Standing::In { .. } | Standing::Out { .. }, _) => {}
        }
    }

    /// Records a response that was not an error.
    pub(super) fn answers_well(&mut self, now: Time) {
        self.answers.good(now);
    }

    /// Records an error. `took` is the time from the choice of this server for the request to the
    /// error.
    pub(super) fn answers_badly(&mut self, now: Time, took: TimeSpan, service_time: ServiceTime) {
        self.errors += 1;
        self.answers.bad(now, took, service_time);
    }

    /// Returns the fraction of errors among the recent responses. On probation the result is 1,
    /// because the one response was an error.
    pub(super) fn error_share(&self) -> Option<f64> {
        if self.is_in() { self.answers.share() } else { Some(1.0) }
    }

    fn eject(&mut self, options: &Options, now: Time) {
        if let Standing::In { since, .. } = self.standing
            && now.since(since) > options.eject_for * u64::from(self.ejections)
        {
            self.ejections = 0;
        }
        self.ejections = (self.ejections + 1).min(LONGEST_ROW);
        self.standing = Standing::Out { until: now + options.eject_for * self.ejections.into() };
        self.renew();
    }

    pub(super) fn probed(&mut self, options: &Options, now: Time, ok: bool) {
        if ok == self.alive {
            self.contrary = 0;
            return;
        }
        self.contrary = self.contrary.saturating_add(1);
        if self.contrary < if ok { options.rise } else { options.fall } {
            return;
        }
        self.alive = ok;
        self.contrary = 0;
        if !ok {
            self.renew();
            return;
        }
        match self.standing {
            Standing::In { .. } => self.enter(options, now),
            // The probes only say that the server is up. Requests have ejected it, so the next
            // request decides, and it may be sent now.
            Standing::Out { .. } => self.standing = Standing::Out { until: now },
        }
    }

    /// Puts the server on probation now if it is ejected, or if it has failed too often to be
    /// trusted. Called when another server returns while no server was trusted.
    pub(super) fn reconsider(&mut self, options: &Options, now: Time) {
        match self.standing {
            Standing::In { .. } if self.failures < options.eject_after => {}
            Standing::In { .. } => self.standing = Standing::Out { until: now },
            Standing::Out { until } => self.standing = Standing::Out { until: until.min(now) },
        }
    }

    fn enter(&mut self, options: &Options, now: Time) {
        self.failures = 0;
        self.standing = Standing::In { since: now, warm: now + options.slow_start };
    }

    /// Begins a new generation, which voids the results of earlier requests. They say nothing about
    /// a server that returns later.
    fn renew(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.trials = 0;
        self.owed = 0.0;
        self.answers = Answers::default();
    }

    pub(super) fn status(&self, options: &Options, now: Time) -> ServerStatus {
        ServerStatus {
            running: self.running,
            state: if self.alive { self.state(options, now) } else { ServerState::Down },
            failures: self.failures,
            ejections: self.ejections,
            connect_failures: self.connect_failures,
            response_failures: self.response_failures,
            errors: self.errors,
        }
    }

    /// Returns the state according to the requests alone, without the probes.
    fn state(&self, options: &Options, now: Time) -> ServerState {
        match self.standing {
            Standing::In { warm, .. } if now < warm => {
                ServerState::SlowStart { share: Ratio::new(self.weight(options, now)) }
            }
            Standing::In { .. } => ServerState::Up,
            Standing::Out { until } if now < until => ServerState::Ejected { until },
            Standing::Out { .. } => ServerState::Probation,
        }
    }
}
