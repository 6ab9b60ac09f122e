//! The way to the writer: a bounded queue of what is to be written.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use super::write::Change;
use crate::answer::ReplyHandle;
use crate::ids::BannerId;
use crate::token::Placement;

/// The number of writes that may wait for the disk. A click beyond that is refused.
const WAITING: usize = 4_096;

/// Something to write.
#[derive(Debug)]
pub(crate) enum Write {
    /// Answered when it is committed.
    Click(Placement, ReplyHandle),
    /// The next block of impressions of a banner.
    Reserve(BannerId),
    /// Said when it is committed, or why not.
    Change(Box<Change>, SyncSender<rusqlite::Result<()>>),
    /// The end: whatever is exact in memory is written.
    Finish,
}

/// The queue to the writer is full, or nobody writes any more.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Write);

/// The way to the writer.
#[derive(Clone, Debug)]
pub(crate) struct WriteQueue(SyncSender<Write>);

impl WriteQueue {
    /// A way, and its end.
    pub(crate) fn new() -> (Self, Receiver<Write>) {
        let (sender, receiver) = sync_channel(WAITING);
        (Self(sender), receiver)
    }

    /// Never waits.
    pub(crate) fn offer(&self, write: Write) -> Result<(), Refused> {
        self.0.try_send(write).map_err(|error| match error {
            TrySendError::Full(write) | TrySendError::Disconnected(write) => Refused(write),
        })
    }

    /// Waits until the change is committed; `None` if nobody writes any more.
    pub(crate) fn commit(&self, change: Change) -> Option<rusqlite::Result<()>> {
        let (sender, done) = sync_channel(1);
        self.0.send(Write::Change(Box::new(change), sender)).ok()?;
        done.recv().ok()
    }

    /// Asks for the writer's end.
    pub(crate) fn finish(&self) {
        let _gone = self.0.send(Write::Finish);
    }
}
