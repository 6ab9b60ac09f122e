//! The slot of a request whose client has gone while the application works on it.
//!
//! Many applications do not notice that a client has gone and work on until they answer. If the slot went to the next
//! request at once, more requests than there are slots would be in the application. So the slot is held until the
//! answer begins or the server closes the connection, and no longer than the answer might have taken.
//! `upstream.departures` says what the application notices.
//!
//! Nothing is learned: with `auto` each departure is passed on by ending this side of the connection, as the client
//! has ended its own. A server that notices closes the connection, and the slot is free at once. The same is done with
//! `unnoticed` if the body of the request has not come as a whole: a server that waits for the rest closes then.
//!
//! The place of a request for a file (`static_file.rs`) is held in the same way. A request that holds neither is ended by
//! closing its connection.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use bywash_config::Departures;
use tokio::time::Instant;

use super::forward::{self, AtServer};
use super::static_file::{FileKey, SLOW, Shows};
use crate::driver::Ticket;
use crate::shared::{CountedSeat, Shared};
use crate::upstream::Exchange;
use crate::worker::Worker;

/// A request that has been admitted and whose answer has not begun. If it is dropped, its client has gone.
pub(super) struct Unanswered {
    worker: Rc<Worker>,
    pub(super) place: Place,
    pub(super) at_server: Option<AtServer>,
    departures: Departures,
}

/// The place that a request holds while it runs.
pub(super) enum Place {
    /// Nothing that others wait for.
    None,
    /// A slot, or a place in the engine's books alone.
    Slot(Ticket),
    /// One of the places of files.
    File(FileKey, CountedSeat),
}

impl Place {
    /// The slot, if it is one.
    pub(super) const fn ticket(&self) -> Option<&Ticket> {
        match self {
            Self::Slot(ticket) => Some(ticket),
            Self::None | Self::File(..) => None,
        }
    }
}

impl Unanswered {
    /// Begins with nothing sent. `departures`: as the application notices them; of a request that holds nothing,
    /// [`Departures::Noticed`].
    pub(super) const fn new(worker: Rc<Worker>, place: Place, departures: Departures) -> Self {
        Self { worker, place, at_server: None, departures }
    }

    /// Takes its place away.
    pub(super) const fn take_place(&mut self) -> Place {
        std::mem::replace(&mut self.place, Place::None)
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let Some(mut at_server) = self.at_server.take() else { return };
        if !at_server.exchange.can_outlive_client(self.departures) {
            return;
        }
        let mut place = self.take_place();
        let holds = match &mut place {
            Place::None => false,
            Place::Slot(ticket) => ticket.departs(),
            Place::File(..) => true,
        };
        if holds {
            let half_closes =
                self.departures == Departures::Auto || !at_server.exchange.has_uploaded();
            at_server.exchange.lets_client_go();
            let counted = CountedSeat::departed(&self.worker.shared);
            self.worker.holds(Departed { place, at_server, half_closes, counted });
        }
    }
}

/// A request whose client has gone and which the application may still work on.
pub(crate) struct Departed {
    place: Place,
    at_server: AtServer,
    half_closes: bool,
    counted: Option<CountedSeat>,
}

impl Departed {
    /// Holds the place until the application is done, and then closes the connection.
    pub(crate) async fn hold(self, shared: &Shared) {
        let Self { place, at_server, half_closes, counted } = self;
        let AtServer { mut exchange, load, mut deadline } = at_server;
        let since = Instant::now();
        let mut has_ended = !half_closes;
        let waits = |cx: &mut Context<'_>, exchange: &mut Exchange| {
            if !has_ended {
                has_ended = exchange.poll_half_close(cx).is_ready();
            }
        };
        let head = forward::head(&mut exchange, &mut deadline, waits, |_, _, _| {}, false);
        let mut head = Box::pin(head);
        // Whatever the server says, that its time is over, and that the engine stops it: each is the end.
        poll_fn(|cx| {
            let stopped = place.ticket().map_or(Poll::Pending, |ticket| ticket.poll_stopped(cx));
            if stopped.is_ready() { Poll::Ready(()) } else { head.as_mut().poll(cx).map(drop) }
        })
        .await;
        drop(head);
        if let Place::File(file, _) = &place
            && since.elapsed() > SLOW.to_std()
        {
            shared.files.note(*file, Shows::Other);
        }
        drop((exchange, load, counted, place));
    }
}
