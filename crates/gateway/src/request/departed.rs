//! The slot of a request whose client has gone while the application works on it.
//!
//! Many applications do not notice that a client has gone and work on until they answer. If the slot went to the next
//! request at once, more requests than there are slots would be in the application. So the slot is held until the
//! answer begins or the server closes the connection, and no longer than an answer may take to begin.
//! `upstream.departures` says what the application notices.
//!
//! Nothing is learned: with `auto` each departure is passed on by ending this side of the connection, as the client
//! has ended its own. A server that notices closes the connection, and the slot is free at once.
//!
//! A request that holds no slot, and one whose body has not been sent as a whole, is ended by closing its connection.

use std::future::poll_fn;
use std::rc::Rc;

use bywash_config::{Departures, Timeouts};

use super::deadline::Deadline;
use super::forward::{self, AtServer};
use crate::driver::Ticket;
use crate::shared::CountedSeat;
use crate::worker::Worker;

/// A request that has been admitted and whose answer has not begun. If it is dropped, its client has gone.
pub(super) struct Unanswered {
    worker: Rc<Worker>,
    /// `None`: the gateway is bypassed.
    pub(super) ticket: Option<Ticket>,
    pub(super) at_server: Option<AtServer>,
    timeouts: Timeouts,
    departures: Departures,
}

impl Unanswered {
    /// Begins with nothing sent. `departures`: as the application notices them; of a request that holds no slot,
    /// [`Departures::Noticed`].
    pub(super) const fn new(
        worker: Rc<Worker>,
        ticket: Option<Ticket>,
        timeouts: Timeouts,
        departures: Departures,
    ) -> Self {
        Self { worker, ticket, at_server: None, timeouts, departures }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let (Some(ticket), Some(mut at_server)) = (self.ticket.take(), self.at_server.take())
        else {
            return;
        };
        if !at_server.exchange.can_outlive_client(self.departures) {
            return;
        }
        at_server.exchange.lets_client_go();
        // From here on it is stopped by nothing but its own end.
        ticket.answering();
        let counted = CountedSeat::departed(&self.worker.shared);
        let (timeouts, departures) = (self.timeouts, self.departures);
        self.worker.holds(Departed { ticket, at_server, timeouts, departures, counted });
    }
}

/// A request whose client has gone and which the application may still work on.
pub(crate) struct Departed {
    ticket: Ticket,
    at_server: AtServer,
    timeouts: Timeouts,
    departures: Departures,
    counted: Option<CountedSeat>,
}

impl Departed {
    /// Holds the slot until the application is done, and then closes the connection.
    pub(crate) async fn hold(self) {
        let Self { ticket, at_server, timeouts, departures, counted } = self;
        let AtServer { mut exchange, load } = at_server;
        let done = async {
            if departures == Departures::Auto {
                poll_fn(|cx| exchange.poll_half_close(cx)).await;
            }
            let mut deadline = Deadline::new(&timeouts, 0);
            forward::head(&mut exchange, &mut deadline, |_, _| {}, |_, _, _| {}, false).await
        };
        // Whatever ends it, the application is done or has had its time.
        let _ = tokio::time::timeout(timeouts.response.to_std(), done).await;
        drop((exchange, load, counted, ticket));
    }
}
