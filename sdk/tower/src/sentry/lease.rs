//! A connection while it works for a request, whatever its driver is.
//!
//! A future is dropped where it stands: with its client, at its deadline, by a `select!`. Its query runs on, and so
//! may the cancellation that is aimed at it. So the guard has the connection, and gives it back only if the daemon
//! has answered its release; else the connection is closed, in the way that its owner has said (what is dropped
//! goes back to many a pool). Whoever waits for the connection learns it by that: `release` returns it, or nothing.
//!
//! What is dropped unreleased is kept for a moment, if its request is over: released and closed at once, its query
//! would be found by nobody, and MariaDB goes on with what nobody reads.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bywash_lease::{Answer, DatabaseName, Fault, Order, RequestId};
use tokio::runtime::Handle as Runtime;
use tokio::sync::oneshot;

use super::Sentry;
use super::conversation::{Conversation, Silence};
use crate::token::{Reason, Terminated, Token};

/// How long a lease outlasts its request's latest deadline: the stop comes when that is over, and must find it.
const BEYOND_DEADLINE: Duration = Duration::from_secs(10);
/// How long the daemon has to cancel the query of a connection that was dropped.
const HEAD_START: Duration = Duration::from_millis(100);

/// Why a connection is not leased.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// Its request is over: the query shall not begin. Nothing is aimed at the connection, which was dropped.
    #[error(transparent)]
    Stopped(#[from] Terminated),
    /// Another says that the connection is his. It was closed; take another one.
    #[error("the connection is leased to another")]
    Taken,
}

/// A connection that works for a request until it is released.
///
/// Dropped without a release it is closed, not dropped, as something may be aimed at it: see [`Sentry::lease`].
#[must_use = "a lease ends when it is dropped, and its connection with it"]
pub struct Leased<C: Send + 'static> {
    /// `None` once it has been given back or closed.
    connection: Option<C>,
    close: Option<Box<dyn FnOnce(C) + Send>>,
    token: Token,
    stage: Stage,
}

/// What is to be done with the connection.
enum Stage {
    /// Nobody was asked, or he has refused: it can be dropped.
    Free,
    /// It may be leased.
    Held(Lease),
    /// Its release is not yet answered, or never will be as it should.
    Doubtful,
}

/// What was said to the daemon.
struct Lease {
    sentry: Sentry,
    talk: Conversation,
    request: RequestId,
    database: DatabaseName,
    number: u64,
    /// Whether the daemon has said that it holds.
    is_answered: bool,
}

impl Sentry {
    /// From now on a connection works for a request: `number` is what the database calls it (`SELECT
    /// pg_backend_pid()`, `SELECT CONNECTION_ID()`). `close` ends the connection if it must not be lent again: `drop`
    /// for one that belongs to nobody, whatever takes it out of its pool for another.
    ///
    /// What nobody is to stop, and what no daemon knows, is given back with a lease that does nothing.
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
            // From here on, as this future may be dropped.
            leased.stage = Stage::Held(lease);
            leased.begin().await?;
        }
        Ok(leased)
    }

    fn counted<C>(&self, close: impl FnOnce(C) + Send + 'static) -> Box<dyn FnOnce(C) + Send> {
        let sentry = self.clone();
        Box::new(move |connection| {
            sentry.count(|stats| &mut stats.closed);
            close(connection);
        })
    }

    /// Leases something in this process that can be stopped: [`Own::stopped`] says when.
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

    /// What is to be said; nothing if there is nobody to say it to, or nothing to be stopped.
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
        let (sentry, is_answered) = (self.clone(), false);
        let lease = Lease { sentry, talk, request, database, number, is_answered };
        Ok(token.leases(self)?.then_some(lease))
    }
}

impl Lease {
    async fn ask_for(
        &self,
        token: &Token,
        told: Option<oneshot::Sender<Reason>>,
    ) -> Result<Answer, Silence> {
        let order = Order::Lease {
            request: self.request.clone(),
            database: self.database.clone(),
            connection: self.number,
            not_after: token.left_at_most().map(|left| in_millis(left + BEYOND_DEADLINE)),
        };
        self.talk.ask(order, told).await
    }

    /// What follows from the answer to a lease: whether it is to be released.
    fn is_held(
        &mut self,
        token: &Token,
        answer: &Result<Answer, Silence>,
    ) -> Result<bool, LeaseError> {
        let sentry = self.sentry.clone();
        match answer {
            Ok(Answer::Done) => {
                self.is_answered = true;
                sentry.count(|stats| &mut stats.leased);
                Ok(true)
            }
            Ok(Answer::Stopped(reason)) => {
                sentry.count(|stats| &mut stats.stopped);
                Err(token.over(Reason::of_line(*reason)).into())
            }
            Ok(Answer::Refused(Fault::Taken, _)) => {
                sentry.count(|stats| &mut stats.taken);
                Err(LeaseError::Taken)
            }
            Ok(Answer::Refused(..) | Answer::Cancelled { .. } | Answer::Told { .. }) => {
                sentry.count(|stats| &mut stats.refused);
                Ok(false)
            }
            Err(silence) => {
                sentry.count(|stats| &mut stats.unreachable);
                // What was said may have been heard, and a cancellation be under way.
                Ok(*silence == Silence::Unanswered)
            }
        }
    }

    fn release(&self) -> Order {
        Order::Release {
            request: self.request.clone(),
            database: self.database.clone(),
            connection: self.number,
        }
    }

    /// Whether the connection may be lent again.
    async fn end(self) -> bool {
        let answer = self.talk.ask(self.release(), None).await;
        let is_over = matches!(answer, Ok(Answer::Done | Answer::Refused(Fault::NotLeased, _)));
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

    /// The daemon may have heard that the request is over before it heard of the lease, and remembers nothing.
    async fn end_if_over(&mut self) -> Result<(), LeaseError> {
        let Some(over) = self.token.terminated() else { return Ok(()) };
        if let Stage::Held(lease) = std::mem::replace(&mut self.stage, Stage::Doubtful) {
            lease.sentry.count(|stats| &mut stats.stopped);
            if lease.end().await {
                self.stage = Stage::Free;
            }
        }
        Err(over.into())
    }

    /// Says that the connection does not work for the request any more, and gives it back; nothing, if it had to be
    /// closed.
    pub async fn release(mut self) -> Option<C> {
        // If this future is dropped, nobody has heard the answer.
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

/// A lease of something in this process; it ends when it is dropped.
#[must_use = "a lease ends when it is dropped"]
pub struct Own {
    lease: Option<Lease>,
    told: Option<oneshot::Receiver<Reason>>,
    token: Token,
}

impl Own {
    /// Returns when the daemon says that the request has been stopped; never, if it does not.
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
            // What is told of its end stops, and nothing else: the answer is of no use.
            lease.talk.say(lease.release());
        }
    }
}

/// So long from now, in milliseconds since 1970.
fn in_millis(span: Duration) -> u64 {
    (SystemTime::now() + span).duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
