//! Finds and cancels the statements of stopped requests in one database, within a budget of
//! statements per second.
//!
//! One query per round searches for the statements of all requests that are due. A request that
//! still has a lease is searched for again, at increasing intervals, until the lease is released or
//! the stop expires. Its query may not have begun yet, or another query may follow. A request
//! without a lease is searched for four times.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use bywash_config::Mode;
use bywash_lease::{Backend, DatabaseName, statement};
use bywash_units::{Time, TimeSpan};
use tokio::sync::mpsc;

use crate::cancel_log::CancelLog;
use crate::database::{Database, DatabaseError, Running, Verdict, Wanted};
use crate::job::Job;
use crate::lease_broker::LeaseBroker;
use crate::spared::Spared;
use crate::token_bucket::TokenBucket;

/// The maximum number of stopped requests that are searched for at a time.
const MOST_JOBS: usize = 65_536;

/// The maximum number of cancelled statements that are remembered. Only recent ones matter, because
/// a statement ends soon after its cancellation.
const MOST_ENDING: usize = 1024;

/// The maximum time that a release waits for a cancellation. Applications give up if the daemon
/// does not respond within 100 ms.
const RELEASE: Duration = Duration::from_millis(50);

/// The interval at which the state of a database is checked.
const CHECK_INTERVAL: TimeSpan = TimeSpan::from_secs(5);

/// The time for which a database is not queried after an error.
const ERROR_PAUSE: TimeSpan = TimeSpan::from_millis(500);

/// A statement to be cancelled, with the index of the job in the round for which it was found.
struct Victim {
    job: usize,
    running: Running,
    /// Whether the statement's connection is leased. Then the connection cannot be released until
    /// the database has responded.
    is_leased: bool,
}

pub(crate) struct Canceller {
    pub(crate) name: DatabaseName,
    pub(crate) settings: bywash_config::Database,
    pub(crate) mode: Mode,
    pub(crate) broker: Rc<LeaseBroker>,
    pub(crate) database: Database,
    pub(crate) bucket: TokenBucket,
    pub(crate) cancel_log: CancelLog,
    /// The end of the time for which a database is not queried after an error.
    pub(crate) down_until: Option<Time>,
    /// The last reported problem of the database; `None` if there is none.
    pub(crate) complaint: Option<String>,
    /// The time of the next check of the database.
    pub(crate) check_at: Time,
    /// The statements that were cancelled last, by connection and serial. A later search may find
    /// such a statement while it still runs. It is not cancelled a second time.
    pub(crate) ending: VecDeque<(u64, u64)>,
}

impl Canceller {
    /// Cancels statements for the jobs that arrive, until the channel is closed.
    pub(crate) async fn run(mut self, mut channel: mpsc::Receiver<Job>) {
        self.check().await;
        let mut jobs: Vec<Job> = Vec::new();
        loop {
            let due = jobs.iter().map(|job| job.due).min();
            tokio::select! {
                job = channel.recv(), if jobs.len() < MOST_JOBS => match job {
                    Some(job) => jobs.push(job),
                    None => return,
                },
                () = self.sleep_until(due) => {}
                () = self.sleep_until(Some(self.check_at)) => self.check().await,
            }
            let wait = self.bucket.wait(self.broker.now());
            if wait > TimeSpan::ZERO {
                tokio::time::sleep(wait.to_std()).await;
            }
            // Jobs beyond the limit wait in the channel. If the channel is full, a stop is answered
            // as too late.
            while jobs.len() < MOST_JOBS
                && let Ok(job) = channel.try_recv()
            {
                jobs.push(job);
            }
            let now = self.broker.now();
            let (due, later): (Vec<Job>, Vec<Job>) =
                jobs.into_iter().partition(|job| job.due <= now);
            jobs = later;
            jobs.extend(self.round(due).await);
        }
    }

    /// Connects to the database, and reports missing privileges. The check runs before the first
    /// stop and is then repeated, so that the status for operators stays correct.
    async fn check(&mut self) {
        self.check_at = self.broker.now() + CHECK_INTERVAL;
        let lacks = self.database.lacks().await;
        match lacks {
            Ok(lack) => {
                self.down_until = None;
                self.report_state(true, lack);
            }
            Err(error) => self.report_state(false, Some(with_sources(&error))),
        }
    }

    /// Records the state of the database for operators. A state that has not changed is not logged
    /// again.
    fn report_state(&mut self, connected: bool, complaint: Option<String>) {
        let name = self.name.as_str();
        if self.complaint != complaint {
            match &complaint {
                Some(words) => self.cancel_log.log_problem(name, words),
                None => self.cancel_log.log_recovery(name),
            }
            self.complaint.clone_from(&complaint);
        }
        self.broker.numbers.connected(name, connected, complaint);
    }

    async fn sleep_until(&self, due: Option<Time>) {
        match due {
            Some(due) => tokio::time::sleep(due.since(self.broker.now()).to_std()).await,
            None => std::future::pending().await,
        }
    }

    /// Searches for the statements of the due jobs and cancels them. Returns the jobs that are to
    /// be searched for again.
    async fn round(&mut self, due: Vec<Job>) -> Vec<Job> {
        let now = self.broker.now();
        let mut jobs = Vec::with_capacity(due.len());
        let mut wanted = Wanted { tagged: self.settings.query_tags, ..Wanted::default() };
        let mut leased = HashMap::new();
        for job in due {
            if job.late <= now {
                self.spare(&job, Spared::Late);
                continue;
            }
            let connections = self.broker.works_for(&job.request, job.only, &self.name);
            let is_tagged = self.settings.query_tags && job.only.is_none();
            if connections.is_empty() && !is_tagged {
                continue;
            }
            leased.extend(connections.iter().map(|connection| (*connection, jobs.len())));
            jobs.push(job);
        }
        wanted.connections.extend(leased.keys());
        if jobs.is_empty() {
            return jobs;
        }
        let mut is_leased = vec![false; jobs.len()];
        for place in leased.values() {
            is_leased[*place] = true;
        }
        let seen = self.act(&jobs, &leased, &wanted).await.unwrap_or_default();
        let now = self.broker.now();
        // In observe mode nothing is cancelled, so the same statements would be found in every
        // round.
        let mut is_done = vec![false; jobs.len()];
        for place in seen.into_iter().filter(|_| self.mode == Mode::Observe) {
            is_done[place] = true;
        }
        let places = jobs.into_iter().zip(is_leased.into_iter().zip(is_done));
        let again = places.filter(|(_, (_, is_done))| !is_done);
        again.filter_map(|(job, (is_leased, _))| job.again(now, is_leased)).collect()
    }

    /// Cancels the statements of the jobs. In observe mode, only reports them. Returns the indices
    /// of the jobs whose statements were found, or `None` if the database did not respond.
    async fn act(
        &mut self,
        jobs: &[Job],
        leased: &HashMap<u64, usize>,
        wanted: &Wanted,
    ) -> Option<Vec<usize>> {
        if self.down_until.is_some_and(|until| self.broker.now() < until) {
            for job in jobs {
                self.spare(job, Spared::Down);
            }
            return None;
        }
        let found = match self.find_statements(wanted).await {
            Ok(found) => found,
            Err(error) => {
                self.handle_error(&error);
                for job in jobs {
                    self.spare(job, Spared::Down);
                }
                return None;
            }
        };
        let victims = self.choose(jobs, leased, found);
        let seen = victims.iter().map(|victim| victim.job).collect();
        if self.mode == Mode::Observe {
            for victim in &victims {
                self.report_cancelled(&jobs[victim.job], victim);
            }
        } else if !victims.is_empty() {
            self.cancel(jobs, victims).await;
        }
        Some(seen)
    }

    async fn find_statements(&mut self, wanted: &Wanted) -> Result<Vec<Running>, DatabaseError> {
        self.spend(1);
        let found = self.database.find_statements(wanted).await?;
        self.broker.numbers.answers(self.name.as_str());
        if let Some(uptime) = self.database.new_uptime() {
            // After a restart, the database may number its connections from one again.
            self.broker.note_uptime(&self.name, uptime);
            self.ending.clear();
        }
        Ok(found)
    }

    fn spend(&mut self, statements: usize) {
        self.bucket.spend(self.broker.now(), statements);
        self.broker.numbers.asked(self.name.as_str(), statements);
    }

    /// Returns the statements that belong to stopped requests and may be cancelled.
    fn choose(
        &self,
        jobs: &[Job],
        leased: &HashMap<u64, usize>,
        found: Vec<Running>,
    ) -> Vec<Victim> {
        let mut victims = Vec::new();
        for running in found {
            if self.ending.contains(&(running.connection, running.serial)) {
                continue;
            }
            let (job, is_leased) = match leased.get(&running.connection) {
                Some(job) => (*job, true),
                None => match tagged(jobs, &running.text) {
                    Some(job) => (job, false),
                    None => continue,
                },
            };
            // The connection may have been leased to another request since the search. The lease
            // may also have ended, because `find_statements` has noticed a restart of the database.
            if is_leased && !self.broker.is_of(&jobs[job].request, &self.backend(&running)) {
                continue;
            }
            match self.objection(&jobs[job], &running, is_leased) {
                Some(why) => self.spare(&jobs[job], why),
                None => victims.push(Victim { job, running, is_leased }),
            }
        }
        victims
    }

    fn objection(&self, job: &Job, running: &Running, is_leased: bool) -> Option<Spared> {
        let tags = statement::query_tags(&running.text);
        let is_of_another = tags.request.is_some_and(|request| request != job.request.as_str());
        // In MySQL, the statement that is cancelled may differ from the statement that was found.
        let is_blind = !self.database.knows_statements() && !self.settings.writes;
        let is_unsure = is_of_another
            || is_blind
            || (!is_leased
                && (!self.database.knows_statements()
                    || self.broker.is_of_another(&job.request, &self.backend(running))));
        if is_unsure {
            Some(Spared::Unsure)
        } else if self.settings.user.as_ref().is_some_and(|user| *user != running.user) {
            Some(Spared::OtherUser)
        } else if !self.settings.writes
            && (running.has_written || !statement::only_reads(&running.text))
        {
            Some(Spared::Writes)
        } else {
            None
        }
    }

    fn backend(&self, running: &Running) -> Backend {
        Backend { database: self.name.clone(), connection: running.connection, of: None }
    }

    async fn cancel(&mut self, jobs: &[Job], victims: Vec<Victim>) {
        for victim in victims {
            let (job, backend) = (&jobs[victim.job], self.backend(&victim.running));
            if victim.is_leased && !self.broker.begin(&job.request, job.only, &backend) {
                self.spare(job, Spared::Gone);
                continue;
            }
            self.spend(1);
            let verdict = self.cancel_one(&victim, &backend).await;
            match verdict {
                Ok(Verdict::Cancelled) => {
                    self.remember(&victim.running);
                    self.report_cancelled(job, &victim);
                }
                Ok(Verdict::Gone) => self.spare(job, Spared::Gone),
                Ok(Verdict::Refused) => self.spare(job, Spared::Refused),
                Err(error) => {
                    self.spare(job, Spared::Down);
                    return self.handle_error(&error);
                }
            }
        }
    }

    /// Cancels one statement. A release of its connection waits for the result, for at most
    /// [`RELEASE`]. If the cancellation fails, the database may still carry it out later, so the
    /// connection is not released.
    async fn cancel_one(
        &mut self,
        victim: &Victim,
        backend: &Backend,
    ) -> Result<Verdict, DatabaseError> {
        if !victim.is_leased {
            return self.database.cancel(&victim.running).await;
        }
        let mut cancelling = std::pin::pin!(self.database.cancel(&victim.running));
        let verdict = tokio::select! {
            verdict = &mut cancelling => verdict,
            () = tokio::time::sleep(RELEASE) => {
                self.broker.doubt(backend);
                cancelling.await
            }
        };
        if verdict.is_ok() {
            self.broker.end(backend);
        } else {
            self.broker.lose(backend);
        }
        verdict
    }

    /// Remembers a cancelled statement. A statement without a serial is not remembered, because it
    /// cannot be distinguished from the next statement of its connection.
    fn remember(&mut self, running: &Running) {
        if running.serial == 0 {
            return;
        }
        if self.ending.len() == MOST_ENDING {
            self.ending.pop_front();
        }
        self.ending.push_back((running.connection, running.serial));
    }

    fn handle_error(&mut self, error: &DatabaseError) {
        self.down_until = Some(self.broker.now() + ERROR_PAUSE);
        self.report_state(false, Some(with_sources(error)));
    }

    fn report_cancelled(&self, job: &Job, victim: &Victim) {
        let (now, is_done) = (self.broker.now(), self.mode == Mode::Enforce);
        let seconds = now.since(job.asked).as_secs_f64();
        self.broker.numbers.cancelled(self.name.as_str(), seconds, is_done);
        if let Some(report) = &job.report {
            report.cancelled();
        }
        let connection = victim.running.connection;
        self.cancel_log.cancelled(
            self.name.as_str(),
            &job.request,
            job.reason,
            connection,
            is_done,
        );
    }

    fn spare(&self, job: &Job, why: Spared) {
        let bit = 1 << why as u8;
        if job.reported.replace(job.reported.get() | bit) & bit != 0 {
            return;
        }
        self.broker.numbers.spare(self.name.as_str(), why);
        if let Some(report) = &job.report {
            report.spared();
        }
        self.cancel_log.spared(self.name.as_str(), &job.request, job.reason, why);
    }
}

/// Returns the index of the job whose request the query tag of a statement names; `None` if there
/// is none.
fn tagged(jobs: &[Job], text: &str) -> Option<usize> {
    let tags = statement::query_tags(text);
    let is_of = |job: &Job| match (tags.request, tags.traceparent) {
        _ if job.only.is_some() => false,
        (Some(request), _) => request == job.request.as_str(),
        (None, Some(trace)) => job.traceparent.as_deref() == Some(trace),
        (None, None) => false,
    };
    jobs.iter().position(is_of)
}

/// Returns the message of an error, followed by the messages of its sources.
fn with_sources(error: &DatabaseError) -> String {
    let mut words = error.to_string();
    let mut behind = std::error::Error::source(error);
    while let Some(source) = behind {
        let more = source.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        behind = source.source();
    }
    words
}
