//! One server: what is known of it, and what requests and probes change. See [`super`].

use bywash_units::{Share, Span, Time};

use super::answers::{Answers, Compared, Pace};
use super::{Failure, Options, ServerStatus, State};

/// Ejections in a row that still make the next one longer.
const LONGEST_ROW: u32 = 8;

/// The weight with which a slow start begins.
const LEAST_WEIGHT: f64 = 0.1;

#[derive(Debug)]
pub(super) struct Server {
    /// Loads of this server that are alive.
    running: u32,
    /// The number of the choice that last fell on it.
    last: u64,
    /// Requests due to it while it starts slowly.
    owed: f64,
    /// As probes have it.
    alive: bool,
    /// Probes in a row that say the contrary of `alive`.
    contrary: u32,
    standing: Standing,
    /// Goes on with every ejection and every `Down`.
    generation: u32,
    /// Loads of this generation that were sent here while it was out.
    trials: u32,
    /// Requests that failed here, in a row.
    failures: u32,
    /// Ejections in a row.
    ejections: u32,
    answers: Answers,
    connect_failures: u64,
    response_failures: u64,
    errors: u64,
}

/// What requests have it. Nothing changes by time alone: out until a moment and on probation after
/// it are one standing.
#[derive(Clone, Copy, Debug)]
enum Standing {
    /// In since a moment; its weight is 1 from another.
    In {
        since: Time,
        warm: Time,
    },
    Out {
        until: Time,
    },
}

/// Where the next request is best sent: the least is chosen.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct Rank {
    doubtful: bool,
    load: f64,
    last: u64,
}

/// What a request must know of its server when it ends.
#[derive(Debug)]
pub(super) struct Stay {
    pub(super) server: usize,
    generation: u32,
    /// It was sent to a server that is out.
    pub(super) trial: bool,
}

/// What a request says of its server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Success,
    /// An answer of 500 or more, and how the server's answers compare with those of the others.
    Error(Compared),
    Failed(Failure),
}

impl Server {
    pub(super) fn new(now: Time, slow_start: Span) -> Self {
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

    /// The same server for the next generation of requests. Its row of failures begins again: the
    /// last one that was in may not be the last any more.
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

    /// Neither probes nor requests have taken it out.
    pub(super) const fn serves(&self) -> bool {
        self.alive && self.is_in()
    }

    /// It serves, and has not earned an ejection that it was spared as the last one.
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
            // On probation it gets one request at most, and that soon.
            Standing::In { .. } | Standing::Out { .. } => 1.0,
        }
    }

    /// It is due this part of a request more. Two at most, as they are for it while it is idle:
    /// what it did not get while it was busy is not made up for.
    pub(super) fn owe(&mut self, part: f64) {
        self.owed = (self.owed + part).min(2.0);
    }

    /// `None`: it is down.
    pub(super) fn rank(&self, options: &Options, now: Time, pace: Pace) -> Option<Rank> {
        if !self.alive {
            return None;
        }
        let doubtful = match self.standing {
            Standing::In { .. } => !self.trusted(options),
            Standing::Out { until } => now < until || self.trials > 0,
        };
        let due = self.owed >= 1.0 && self.running == 0;
        let running = f64::from(self.running + 1) + self.answers.running(now, pace);
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

    /// A request of its trial has got the head of an answer.
    pub(super) fn answered(&mut self, options: &Options, now: Time, stay: &Stay) {
        if stay.generation == self.generation {
            self.succeed(options, now);
        }
    }

    /// A request is over. Says whether its outcome still counts.
    pub(super) const fn leave(&mut self, stay: &Stay) -> bool {
        // A stay is ended once, by the load that holds it: neither count goes below zero.
        self.running -= 1;
        let counts = stay.generation == self.generation;
        if counts && stay.trial {
            self.trials -= 1;
        }
        counts
    }

    /// A request is over, with an outcome. `alone`: no other server is trusted.
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

    /// An answer was an error. In itself that says nothing: it may be the request that is bad.
    fn err(&mut self, options: &Options, now: Time, compared: Compared, alone: bool) {
        match (self.standing, compared) {
            (Standing::In { .. }, Compared::Worse) if !alone => self.eject(options, now),
            (Standing::Out { until }, Compared::Worse) if now >= until => self.eject(options, now),
            // It is no worse than those that are in.
            (Standing::Out { .. }, Compared::Alike) => self.enter(options, now),
            (Standing::In { .. } | Standing::Out { .. }, _) => {}
        }
    }

    /// Notes an answer that was no error.
    pub(super) fn answers_well(&mut self, now: Time) {
        self.answers.good(now);
    }

    /// Notes an error that came that long after its request was sent.
    pub(super) fn answers_badly(&mut self, now: Time, took: Span, pace: Pace) {
        self.errors += 1;
        self.answers.bad(now, took, pace);
    }

    /// The share of errors among its recent answers. On probation its one answer tells.
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
            // Requests took it out, and no probe was asked: a request decides, but now.
            Standing::Out { .. } => self.standing = Standing::Out { until: now },
        }
    }

    /// Another is back after none was trusted: if this one is out, it is tried now.
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

    /// What was sent there until now says nothing about what comes back.
    fn renew(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.trials = 0;
        self.owed = 0.0;
        self.answers = Answers::default();
    }

    pub(super) fn status(&self, options: &Options, now: Time) -> ServerStatus {
        ServerStatus {
            running: self.running,
            state: if self.alive { self.state(options, now) } else { State::Down },
            failures: self.failures,
            ejections: self.ejections,
            connect_failures: self.connect_failures,
            response_failures: self.response_failures,
            errors: self.errors,
        }
    }

    /// As requests have it.
    fn state(&self, options: &Options, now: Time) -> State {
        match self.standing {
            Standing::In { warm, .. } if now < warm => {
                State::SlowStart { share: Share::new(self.weight(options, now)) }
            }
            Standing::In { .. } => State::Up,
            Standing::Out { until } if now < until => State::Ejected { until },
            Standing::Out { .. } => State::Probation,
        }
    }
}
