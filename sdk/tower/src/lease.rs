//! Leases of database connections: each makes a connection work for one request. They work with any
//! database driver.
//! A future can be dropped at any await: because its client left, at its deadline, or by a
//! `select!`. The query of a dropped future runs on in the database, and a cancellation may be
//! aimed at its connection. So the guard owns the connection, and gives it back only if the daemon
//! has confirmed the release. Otherwise the guard calls the application's `close` function, because
//! merely dropping a connection returns it to its pool in many pools. `release` returns the
//! connection, or `None` if it was closed.
//!
//! If a guard is dropped without a release after its request is over, the lease is kept for
//! [`HEAD_START`]. Without this delay the connection would be closed before the daemon could cancel
//! its query. MariaDB goes on with a query whose result nobody reads.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bywash_lease::{Answer, Command, DatabaseName, Refusal, RequestId};
use tokio::runtime::Handle as Runtime;
use tokio::sync::oneshot;

use crate::stop_client::{Conversation, Silence, StopClient};
use crate::terminated::{Reason, Terminated};
use crate::token::Token;

/// The time for which a lease outlasts the latest possible deadline of its request. The daemon
/// receives the stop only after that deadline, and must still find the lease then.
const BEYOND_DEADLINE: Duration = Duration::from_secs(10);
/// The time that the daemon gets to cancel the query of a dropped connection before the lease is
/// released.
const HEAD_START: Duration = Duration::from_millis(100);

/// The reason why a connection could not be leased.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// The request is over, so its query must not begin. The connection was dropped. It was closed
    /// only if a cancellation may be aimed at it.
    #[error("{0}")]
    Stopped(#[from] Terminated),
    /// Another client of the daemon has leased this connection. The connection was closed. The
    /// caller should take another one.
    #[error("another client of the stop daemon has leased the connection, which is closed now")]
    Taken,
}

/// A connection that works for one request until it is released.
///
/// If the guard is dropped without a release, it calls the `close` function of
/// [`StopClient::lease`] for the connection. The connection must not go back to its pool, because a
/// cancellation may be aimed at it.
#[must_use = "a lease ends when it is dropped, and its connection with it"]
pub struct Leased<C: Send + 'static> {
    /// `None` once the connection has been given back or closed.
    connection: Option<C>,
    /// The application's function that ends a connection which must not be reused.
    close: Option<Box<dyn FnOnce(C) + Send>>,
    token: Token,
    stage: Stage,
}

/// The state that decides what a drop of the guard must do with the connection.
enum Stage {
    /// The SDK has not requested a lease, or the daemon has refused it. The connection can be
    /// dropped without `close`.
    Free,
    /// A lease was requested and the connection may be leased: a drop must release the lease and
    /// close the connection.
    Held(Lease),
    /// A release was requested and not confirmed: a drop must close the connection.
    Doubtful,
}

/// A lease that the SDK will request, or has requested, from the daemon.
#[derive(Clone)]
struct Lease {
    stop_client: StopClient,
    conversation: Conversation,
    request: RequestId,
    database: DatabaseName,
    number: u64,
    /// Whether the daemon has answered that the connection is leased.
    is_answered: bool,
}

impl StopClient {
    /// Leases a connection: from now on it works for the request of `token`.
    ///
    /// `number` is the database's number of the connection (`SELECT pg_backend_pid()`, `SELECT
    /// CONNECTION_ID()`). `close` ends a connection that must not be reused. For a connection
    /// without a pool, pass `drop`. For a pooled connection, pass a function that takes it out of
    /// its pool.
    ///
    /// If the request cannot be stopped, or there is no daemon, the returned lease does nothing.
    ///
    /// # Errors
    ///
    /// Returns [`LeaseError::Stopped`] if the request is over, and [`LeaseError::Taken`] if another
    /// client has leased the connection.
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
            // Set the stage before the await below, because this future may be dropped there.
            leased.stage = Stage::Held(lease);
            leased.begin().await?;
            // This second check is necessary because the daemon may have read the stop before the
            // lease, and does not remember such a stop.
            if let Err(over) = self.count_if_over(token.checkpoint()) {
                leased.end().await;
                return Err(over.into());
            }
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

    /// Leases work in this process that is not a database query and that can be stopped.
    /// [`Own::stopped`] returns when the work must stop. Returns [`LeaseError::Stopped`] if the
    /// request is already over.
    pub async fn own(&self, token: &Token) -> Result<Own, LeaseError> {
        let mut own = Own { lease: None, told: None, token: token.clone() };
        if let Some(mut lease) = self.plan(token, DatabaseName::own(), self.number()).await? {
            let (sender, told) = oneshot::channel();
            let answer = lease.ask_for(token, Some(sender)).await;
            if lease.is_held(token, &answer)? {
                (own.lease, own.told) = (Some(lease), Some(told));
            }
            // If this fails, the drop of `own` releases the lease.
            self.count_if_over(token.checkpoint())?;
        }
        Ok(own)
    }

    /// Passes a checkpoint that also asks the daemon. Call it after a query has failed: if a
    /// gateway has told the daemon first that the request is over, only the daemon knows why the
    /// query was cancelled. The connection is not needed, so the call also works after
    /// [`Leased::release`] has closed it.
    ///
    /// # Errors
    ///
    /// Returns an error if the request is over.
    pub async fn checkpoint(&self, token: &Token) -> Result<(), Terminated> {
        token.checkpoint()?;
        let Some(request) = token.request().cloned() else { return Ok(()) };
        let Some(conversation) = self.conversation().await else { return Ok(()) };
        if !token.leases(self)? {
            return Ok(());
        }
        let lease = Lease::new(self, conversation, request, DatabaseName::own(), self.number());
        // The drop of `own` releases the lease if this future is dropped at the await.
        let mut own = Own { lease: Some(lease.clone()), told: None, token: token.clone() };
        match lease.ask_for(token, None).await {
            Ok(Answer::Done) => {}
            Ok(Answer::Stopped(reason)) => {
                own.lease = None;
                token.stopped(Reason::of_line(reason))?;
            }
            Ok(_) | Err(_) => own.lease = None,
        }
        token.checkpoint()
    }

    /// Counts the query that does not begin if `result` is the error of a request that is over.
    fn count_if_over<T>(&self, result: Result<T, Terminated>) -> Result<T, Terminated> {
        result.inspect_err(|_| self.count(|stats| &mut stats.stopped))
    }

    /// Returns the lease to request. Returns `None` if there is no daemon, the request has no name,
    /// or nothing can end the request any more. Returns an error if the request is over.
    async fn plan(
        &self,
        token: &Token,
        database: DatabaseName,
        number: u64,
    ) -> Result<Option<Lease>, Terminated> {
        self.count_if_over(token.checkpoint())?;
        let Some(request) = token.request().cloned() else {
            self.count_unnamed();
            return Ok(None);
        };
        let Some(conversation) = self.conversation().await else {
            self.count_unreachable();
            return Ok(None);
        };
        let lease = Lease::new(self, conversation, request, database, number);
        Ok(self.count_if_over(token.leases(self))?.then_some(lease))
    }
}

impl Lease {
    fn new(
        stop_client: &StopClient,
        conversation: Conversation,
        request: RequestId,
        database: DatabaseName,
        number: u64,
    ) -> Self {
        let stop_client = stop_client.clone();
        Self { stop_client, conversation, request, database, number, is_answered: false }
    }

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
        self.conversation.ask(command, told).await
    }

    /// Evaluates the answer to a lease request. Returns whether the lease must be released later,
    /// or an error if the connection must not be used.
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
                stop_client.count_if_over(token.stopped(Reason::of_line(*reason)))?;
                // Nothing can end the request any more.
                stop_client.count(|stats| &mut stats.refused);
                Ok(false)
            }
            Ok(Answer::Refused(Refusal::Taken, _)) => {
                stop_client.count(|stats| &mut stats.taken);
                Err(LeaseError::Taken)
            }
            Ok(
                refusal
                @ (Answer::Refused(..) | Answer::Cancelled { .. } | Answer::StopWork { .. }),
            ) => {
                stop_client.count_lease_refusal(refusal);
                Ok(false)
            }
            Err(silence) => {
                stop_client.count_unreachable();
                // The daemon may have read a lease request that it did not answer. So a
                // cancellation may be under way.
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

    /// Releases the lease. Returns whether the connection may be reused, which needs the daemon's
    /// confirmation.
    async fn end(self) -> bool {
        let answer = self.conversation.ask(self.release(), None).await;
        let is_over = matches!(answer, Ok(Answer::Done | Answer::Refused(Refusal::NotLeased, _)));
        is_over && self.is_answered
    }
}

impl<C: Send + 'static> Leased<C> {
    async fn begin(&mut self) -> Result<(), LeaseError> {
        let Stage::Held(lease) = &mut self.stage else { return Ok(()) };
        let answer = lease.ask_for(&self.token, None).await;
        match lease.is_held(&self.token, &answer) {
            Ok(true) => {}
            Ok(false) => self.stage = Stage::Free,
            Err(error) => {
                let is_taken = error == LeaseError::Taken;
                self.stage = if is_taken { Stage::Doubtful } else { Stage::Free };
                return Err(error);
            }
        }
        Ok(())
    }

    /// Releases the lease and returns the connection. Returns `None` if the release was not
    /// confirmed, so that the connection had to be closed.
    pub async fn release(mut self) -> Option<C> {
        let is_good = self.end().await;
        self.connection.take_if(|_| is_good)
    }

    /// Ends the lease. Returns whether the connection may be reused.
    async fn end(&mut self) -> bool {
        // If this future is dropped at the await below, the answer to the release stays unknown.
        let is_good = match std::mem::replace(&mut self.stage, Stage::Doubtful) {
            Stage::Held(lease) => lease.end().await,
            Stage::Free => true,
            Stage::Doubtful => false,
        };
        if is_good {
            self.stage = Stage::Free;
        }
        is_good
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
                    lease.conversation.say(lease.release());
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

/// A lease of work in this process. The lease ends when this value is dropped.
#[must_use = "a lease ends when it is dropped"]
pub struct Own {
    lease: Option<Lease>,
    told: Option<oneshot::Receiver<Reason>>,
    token: Token,
}

impl Own {
    /// Returns when the daemon reports that the request has been stopped, which ends the request.
    /// If the daemon never reports that, or nothing can end the request any more, this future never
    /// completes.
    pub async fn stopped(&mut self) -> Terminated {
        if let Some(told) = &mut self.told
            && let Ok(reason) = told.await
            && let Err(over) = self.token.stopped(reason)
        {
            return over;
        }
        self.told = None;
        std::future::pending().await
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(lease) = &self.lease {
            // Do not wait for the answer: the lease stops only this process's own work, which has
            // ended.
            lease.conversation.say(lease.release());
        }
    }
}

/// Returns the time `span` from now, in milliseconds since 1970.
fn in_millis(span: Duration) -> u64 {
    (SystemTime::now() + span).duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
