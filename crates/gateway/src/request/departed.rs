//! Holds the slot of a request whose client has left while the application still works on it.
//!
//! Many applications do not notice that a client has left, and work on until they respond. If the
//! slot went to the next request at once, the application would process more requests than there
//! are slots. So the slot is held until the response begins or the server closes the connection,
//! but no longer than the time limit for the response. `upstream.departures` says which disconnects
//! the application notices.
//!
//! The gateway does not learn by itself whether the application has noticed. With `auto`, it passes
//! each disconnect on: it shuts down its sending side of the upstream connection, as the client has
//! closed its own. A server that notices then closes the connection, and the slot is free at once.
//! With `unnoticed`, the gateway does so only if the body of the request has not arrived
//! completely. A server that waits for the rest then closes the connection.
//!
//! The permit of a request for a file (`static_files.rs`) is held in the same way. For a request
//! that holds neither a slot nor a permit, the gateway closes the upstream connection at once.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bywash_config::Departures;
use bywash_engine::ClassId;
use bywash_units::TimeSpan;
use tokio::time::Instant;

use super::forward::{self, AtServer};
use super::record::Record;
use crate::context::Worker;
use crate::driver::Ticket;
use crate::settings::Settings;
use crate::shared::{CountedPermit, Shared};
use crate::static_files::{FileKey, SLOW, Shows};
use crate::upstream::Exchange;

/// An admitted request whose response has not begun. Dropping it means that the client has left.
pub(super) struct Unanswered {
    worker: Rc<Worker>,
    pub(super) admission: Admission,
    pub(super) at_server: Option<AtServer>,
    departures: Departures,
    settings: Rc<Settings>,
    class: ClassId,
}

/// The slot or permit that a request holds while it runs.
pub(super) enum Admission {
    /// Neither a slot nor a permit, because the gateway is bypassed or the request is only
    /// observed.
    None,
    /// The ticket of the engine. It holds a slot, except for an observed request, which holds none.
    Slot(Ticket),
    /// A permit for a file that runs without a slot.
    File(FileKey, CountedPermit),
}

impl Admission {
    /// Returns the engine's ticket, if the request has one.
    pub(super) const fn ticket(&self) -> Option<&Ticket> {
        match self {
            Self::Slot(ticket) => Some(ticket),
            Self::None | Self::File(..) => None,
        }
    }
}

impl Unanswered {
    /// Creates a request of which nothing was sent yet. `departures` says which disconnects the
    /// application notices. For a request that holds nothing, it must be [`Departures::Noticed`].
    pub(super) fn new(
        worker: Rc<Worker>,
        admission: Admission,
        departures: Departures,
        record: &Record,
    ) -> Self {
        let (settings, class) = (Rc::clone(record.settings()), record.class());
        Self { worker, admission, at_server: None, departures, settings, class }
    }

    /// Takes the slot or permit out of the request, so that dropping the request does not release
    /// it.
    pub(super) const fn take_admission(&mut self) -> Admission {
        std::mem::replace(&mut self.admission, Admission::None)
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let Some(mut at_server) = self.at_server.take() else { return };
        if !at_server.exchange.can_outlive_client(self.departures) {
            return;
        }
        let mut admission = self.take_admission();
        let holds = match &mut admission {
            Admission::None => false,
            Admission::Slot(ticket) => ticket.client_left(),
            Admission::File(..) => true,
        };
        if holds {
            let half_closes =
                self.departures == Departures::Auto || !at_server.exchange.has_uploaded();
            at_server.exchange.lets_client_go();
            let counted = CountedPermit::departed(&self.worker.shared);
            let departed = Departed { admission, at_server, half_closes, counted };
            let shared = Arc::clone(&self.worker.shared);
            let (settings, class) = (Rc::clone(&self.settings), self.class);
            self.worker.spawn_departed(async move {
                let held = departed.hold(&shared).await;
                settings.class_metrics(class).worked_for_nobody(held);
            });
        }
    }
}

/// A request whose client has left, and which the application may still work on.
struct Departed {
    admission: Admission,
    at_server: AtServer,
    half_closes: bool,
    counted: Option<CountedPermit>,
}

impl Departed {
    /// Holds the slot or permit until the application is done, and then closes the connection.
    /// Returns the time for which it was held.
    async fn hold(self, shared: &Shared) -> TimeSpan {
        let Self { mut admission, at_server, half_closes, counted } = self;
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
        // The wait ends with any response or error of the server, with a timeout, or when the
        // engine stops the request.
        let answered = poll_fn(|cx| {
            let stopped =
                admission.ticket().map_or(Poll::Pending, |ticket| ticket.poll_stopped(cx));
            if stopped.is_ready() {
                return Poll::Ready(false);
            }
            head.as_mut().poll(cx).map(|head| head.is_ok())
        })
        .await;
        drop(head);
        if answered && let Admission::Slot(ticket) = &mut admission {
            ticket.answered_after_departure();
        }
        if let Admission::File(file, _) = &admission
            && since.elapsed() > SLOW.to_std()
        {
            shared.note_file(*file, Shows::Other);
        }
        drop((exchange, load, counted, admission));
        TimeSpan::from_secs_f64(since.elapsed().as_secs_f64())
    }
}
