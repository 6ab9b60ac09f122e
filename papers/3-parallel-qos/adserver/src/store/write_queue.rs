//! The bounded queue of writes for the writer thread.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::write::Change;
use crate::answer::ReplyHandle;
use crate::ids::BannerId;
use crate::token::Placement;

/// The maximum number of waiting writes. When the queue is full, further clicks are refused.
const WAITING: usize = 4_096;

/// A write that waits for the writer thread.
#[derive(Debug)]
pub(crate) enum Write {
    /// A click, which is answered after its commit.
    Click(Placement, ReplyHandle),
    /// The reservation of the next block of a banner's impressions.
    Reserve(BannerId),
    /// A change of stored objects. The result of its commit goes to the sender.
    Change(Box<Change>, SyncSender<rusqlite::Result<()>>),
    /// The command to write the exact counts from memory and to end the writer thread.
    Finish,
}

/// A write that was refused, because the queue is full or the writer thread has ended.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Write);

/// The sending side of the queue to the writer thread.
#[derive(Clone, Debug)]
pub(crate) struct WriteQueue(SyncSender<Write>);

impl WriteQueue {
    /// Creates a queue, and returns its sending and its receiving side.
    pub(crate) fn new() -> (Self, Receiver<Write>) {
        let (sender, receiver) = sync_channel(WAITING);
        (Self(sender), receiver)
    }

    /// Adds a write to the queue without waiting. Returns the write as an error if the queue is
    /// full or the writer thread has ended.
    pub(crate) fn offer(&self, write: Write) -> Result<(), Refused> {
        self.0.try_send(write).map_err(|error| match error {
            TrySendError::Full(write) | TrySendError::Disconnected(write) => Refused(write),
        })
    }

    /// Commits a change, and waits for the result. Returns `None` if the writer thread has ended.
    pub(crate) fn commit(&self, change: Change) -> Option<rusqlite::Result<()>> {
        let (sender, done) = sync_channel(1);
        self.0.send(Write::Change(Box::new(change), sender)).ok()?;
        done.recv().ok()
    }

    /// Tells the writer thread to end after the writes that are already in the queue.
    pub(crate) fn finish(&self) {
        let _gone = self.0.send(Write::Finish);
    }
}
