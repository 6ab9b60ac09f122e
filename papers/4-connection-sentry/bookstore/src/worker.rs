//! A worker thread, like those of paper 4's plain server: it takes a request, serves the request to
//! its end, and answers.

use std::io::Write;
use std::sync::Arc;

use bywash_database::DbError;

use crate::Service;
use crate::app_state::{AppState, WorkerResponse};
use crate::files;
use crate::request::ParsedRequest;
use crate::store::Store;

/// A worker with its own database connection.
pub(crate) struct Worker {
    state: Arc<AppState>,
    store: Store,
}

impl Worker {
    pub(crate) fn new(state: Arc<AppState>, store: Store) -> Self {
        Self { state, store }
    }

    /// Serves requests until the queue of the store is closed.
    pub(crate) fn run(self) {
        let Self { state, mut store } = self;
        state.queue.work(|service, request| {
            let request = match request {
                ParsedRequest::File(number) => {
                    return Ok(WorkerResponse::File(files::file(*number)));
                }
                ParsedRequest::Store(request) => request,
            };
            let served = store.serve(request);
            let is_unavailable = served.as_ref().is_err_and(DbError::is_unavailable);
            if is_unavailable || store.has_begun_statement() {
                state.queue.counters.record_database(!is_unavailable);
            }
            if let Err(error) = &served
                && *error != DbError::Cancelled
            {
                let name = Service::ALL[service].name();
                // If the message cannot be printed, the store still serves.
                let _unread = writeln!(std::io::stderr(), "bookstore: {name}: {error}");
            }
            served.map(WorkerResponse::Page)
        });
    }
}
