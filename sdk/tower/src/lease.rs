//! A connection that works for a request, with any driver.
//!
//! A future can be dropped at any await: because its client left, at its deadline, or by a
//! `select!`. Its query runs on, and a cancellation may still be aimed at it. So the guard owns the
//! connection, and gives it back only if the daemon has confirmed the release. Otherwise it closes
//! the connection by a function of the owner, since dropping a connection returns it to many a
//! pool. The caller learns the result from `release`, which returns the connection or `None`.
//!
//! If a guard is dropped unreleased and its request is over, the lease is kept for a moment. If it
//! were released and closed at once, the daemon would not find its query any more, and MariaDB goes
//! on with a query whose result is not read.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bywash_lease::{Answer, Command, DatabaseName, Refusal, RequestId};
use tokio::runtime::Handle as Runtime;
use tokio::sync::oneshot;

use crate::stop_client::{Conversation, Silence, StopClient};
use crate::terminated::{Reason, Terminated};
use crate::token::Token;

/// How long a lease outlasts the latest deadline of its request. The stop comes after that deadline
/// and must find the lease.
const BEYOND_DEADLINE: Duration = Duration::from_secs(10);
/// How long the daemon has to cancel the query of a connection that was dropped.
const HEAD_START: Duration = Duration::from_millis(100);

/// Why a connection is not leased.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// The request is over, so the query must not begin. No cancellation is aimed at the
    /// connection, which was dropped.
    #[error(transparent)]
    Stopped(#[from] Terminated),
    /// Another client of the daemon has leased this connection. It was closed; take another one.
    #[error("another client of the stop daemon has leased the connection, which is closed now")]
    Taken,
}

/// A connection that works for a request until it is released.
///
/// If it is dropped without a release, the connection is closed and not merely dropped, since a
/// cancellation may be aimed at it: see [`StopClient::lease`].
#[must_use = "a lease ends when it is dropped, and its connection with it"]
pub struct Leased<C: Send + 'static> {
    /// `None` once the connection has been given back or closed.
    connection: Option<C>,
    close: Option<Box<dyn FnOnce(C) + Send>>,
    token: Token,
    stage: Stage,
}

/// The way in which the connection ends when the guard is dropped.
enum Stage {
    /// The SDK has not requested a lease, or the daemon has refused it: the connection can be
    /// dropped.
    Free,
    /// The connection may be leased.
    Held(Lease),
    /// The release is not yet answered, or was not answered with a confirmation.
    Doubtful,
}

/// A lease that the SDK has requested from the daemon or will request.
struct Lease {
    stop_client: StopClient,
    talk: Conversation,
    request: RequestId,
    database: DatabaseName,
    number: u64,
    /// Whether the daemon has confirmed the lease.
    is_answered: bool,
}

impl StopClient {
    /// Leases a connection: from now on it works for the request of `token`. `number` is the
    /// database's number of the connection (`SELECT pg_backend_pid()`, `SELECT CONNECTION_ID()`).
    /// `close` ends the connection if it must not be reused: `drop` for a connection without a
    /// pool, and a function that takes it out of its pool for a pooled one.
    ///
    /// If the request cannot be stopped, or there is no daemon, the returned lease does nothing.
    ///
    /// # Errors
    /// [`LeaseError::Stopped`] if the request is over, [`LeaseError::Taken`] if another client has
    /// leased the connection.
    pub async fn lease<C: Send + 'static>(
        &self,
        token: &Token,
        database: &DatabaseName,
        number: u64,
        connection: C,
        close: impl FnOnce(C) + Send + 'static,
    ) -> Result<Leased<C>, LeaseError> {
        let mut leased = Leased {
            connection: Some(connection),
            close: Some(self.counted(close)),
            token: token.clone(),
            stage: Stage::Free,
        };
        if let Some(lease) = self.plan(token, database.clone(), number).await? {
            // Set the stage before the await below, at which this future may be dropped.
            leased.stage = Stage::Held(lease);
            leased.begin().await?;
        }
        Ok(leased)
    }

    fn counted<C>(&self, close: impl FnOnce(C) + Send + 'static) -> Box<dyn FnOnce(C) + Send> {
        let stop_client = self.clone();
        Box::new(move |connection| {
            stop_client.count(|stats| &mut stats.closed);
            close(connection);
        })
    }

    /// Leases something in this process that can be stopped. [`Own::stopped`] returns when it must
    /// stop.
    pub async fn own(&self, token: &Token) -> Result<Own, LeaseError> {
        let mut own = Own { lease: None, told: None, token: token.clone() };
        if let Some(mut lease) = self.plan(token, DatabaseName::own(), self.number()).await? {
            let (sender, told) = oneshot::channel();
            let answer = lease.ask_for(token, Some(sender)).await;
            if lease.is_held(token, &answer)? {
                if let Some(over) = token.terminated() {
                    lease.end().await;
                    self.count(|stats| &mut stats.stopped);
                    return Err(over.into());
                }
                (own.lease, own.told) = (Some(lease), Some(told));
            }
        }
        Ok(own)
    }

    /// Returns the lease to ask for; `None` if there is no daemon, the request has no name, or
    /// nothing can end it any more.
    async fn plan(
        &self,
        token: &Token,
        database: DatabaseName,
        number: u64,
    ) -> Result<Option<Lease>, Terminated> {
        let Some(request) = token.request().cloned() else { return Ok(None) };
        let Some(talk) = self.conversation().await else {
            self.count(|stats| &mut stats.unreachable);
            return token.checkpoint().map(|()| None);
        };
        let (stop_client, is_answered) = (self.clone(), false);
        let lease = Lease { stop_client, talk, request, database, number, is_answered };
        Ok(token.leases(self)?.then_some(lease))
    }
}

impl Lease {
    async fn ask_for(
        &self,
        token: &Token,
        told: Option<oneshot::Sender<Reason>>,
    ) -> Result<Answer, Silence> {
        let command = Command::Lease {
            request: self.request.clone(),
            database: self.database.clone(),
            connection: self.number,
            not_after: token.left_at_most().map(|left| in_millis(left + BEYOND_DEADLINE)),
        };
        self.talk.ask(command, told).await
    }

    /// Evaluates the answer to a lease. Returns whether the lease must be released.
    fn is_held(
        &mut self,
        token: &Token,
        answer: &Result<Answer, Silence>,
    ) -> Result<bool, LeaseError> {
        let stop_client = self.stop_client.clone();
        match answer {
            Ok(Answer::Done) => {
                self.is_answered = true;
                stop_client.count(|stats| &mut stats.leased);
                Ok(true)
            }
            Ok(Answer::Stopped(reason)) => {
                stop_client.count(|stats| &mut stats.stopped);
                Err(token.over(Reason::of_line(*reason)).into())
            }
            Ok(Answer::Refused(Refusal::Taken, _)) => {
                stop_client.count(|stats| &mut stats.taken);
                Err(LeaseError::Taken)
            }
            Ok(Answer::Refused(..) | Answer::Cancelled { .. } | Answer::StopWork { .. }) => {
                stop_client.count(|stats| &mut stats.refused);
                Ok(false)
            }
            Err(silence) => {
                stop_client.count(|stats| &mut stats.unreachable);
                // The daemon may have read an unanswered lease, so a cancellation may be under way.
                Ok(*silence == Silence::Unanswered)
            }
        }
    }

    fn release(&self) -> Command {
        Command::Release {
            request: self.request.clone(),
            database: self.database.clone(),
            connection: self.number,
        }
    }

    /// Releases the connection. Returns whether it may be reused.
    async fn end(self) -> bool {
        let answer = self.talk.ask(self.release(), None).await;
        let is_over = matches!(answer, Ok(Answer::Done | Answer::Refused(Refusal::NotLeased, _)));
        is_over && self.is_answered
    }
}

impl<C: Send + 'static> Leased<C> {
    async fn begin(&mut self) -> Result<(), LeaseError> {
        let Stage::Held(lease) = &mut self.stage else { return Ok(()) };
        let answer = lease.ask_for(&self.token, None).await;
        match lease.is_held(&self.token, &answer) {
            Ok(true) => return self.end_if_over().await,
            Ok(false) => self.stage = Stage::Free,
            Err(error) => {
                let is_taken = error == LeaseError::Taken;
                self.stage = if is_taken { Stage::Doubtful } else { Stage::Free };
                return Err(error);
            }
        }
        Ok(())
    }

    /// Ends the lease if the request is over. The daemon may have read the stop before the lease,
    /// and it does not remember such a stop.
    async fn end_if_over(&mut self) -> Result<(), LeaseError> {
        let Some(over) = self.token.terminated() else { return Ok(()) };
        if let Stage::Held(lease) = std::mem::replace(&mut self.stage, Stage::Doubtful) {
            lease.stop_client.count(|stats| &mut stats.stopped);
            if lease.end().await {
                self.stage = Stage::Free;
            }
        }
        Err(over.into())
    }

    /// Releases the connection and gives it back; `None` if it had to be closed.
    pub async fn release(mut self) -> Option<C> {
        // If this future is dropped, the answer to the release stays unknown.
        let stage = std::mem::replace(&mut self.stage, Stage::Doubtful);
        let is_good = match stage {
            Stage::Held(lease) => lease.end().await,
            Stage::Free => true,
            Stage::Doubtful => false,
        };
        self.connection.take_if(|_| is_good)
    }
}

impl<C: Send + 'static> Drop for Leased<C> {
    fn drop(&mut self) {
        let (Some(connection), Some(close)) = (self.connection.take(), self.close.take()) else {
            return;
        };
        match std::mem::replace(&mut self.stage, Stage::Free) {
            Stage::Free => drop(connection),
            Stage::Doubtful => close(connection),
            Stage::Held(lease) => {
                let Ok(runtime) = Runtime::try_current() else {
                    lease.talk.say(lease.release());
                    return close(connection);
                };
                let is_over = self.token.reason().is_some();
                runtime.spawn(async move {
                    if is_over {
                        tokio::time::sleep(HEAD_START).await;
                    }
                    lease.end().await;
                    close(connection);
                });
            }
        }
    }
}

impl<C: Send + 'static> Deref for Leased<C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.connection.as_ref().expect("only a release and a drop take it, and both are the end")
    }
}

impl<C: Send + 'static> DerefMut for Leased<C> {
    fn deref_mut(&mut self) -> &mut C {
        self.connection.as_mut().expect("only a release and a drop take it, and both are the end")
    }
}

/// A lease of something in this process. It ends when it is dropped.
#[must_use = "a lease ends when it is dropped"]
pub struct Own {
    lease: Option<Lease>,
    told: Option<oneshot::Receiver<Reason>>,
    token: Token,
}

impl Own {
    /// Returns when the daemon reports that the request has been stopped. It never returns if the
    /// daemon does not.
    pub async fn stopped(&mut self) -> Terminated {
        if let Some(told) = &mut self.told
            && let Ok(reason) = told.await
        {
            return self.token.over(reason);
        }
        self.told = None;
        std::future::pending().await
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(lease) = &self.lease {
            // The answer is not needed: the lease stops only this process's own work, which has
            // ended.
            lease.talk.say(lease.release());
        }
    }
}

/// Returns the moment `span` from now, in milliseconds since 1970.
fn in_millis(span: Duration) -> u64 {
    (SystemTime::now() + span).duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
