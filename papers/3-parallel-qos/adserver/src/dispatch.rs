//! Passes each request to the thread that serves it: pages to the pool, clicks to the writer, and
//! all other requests to a worker.

use bywash_site::{Refusal, ReplyReceiver};

use crate::answer::{Answer, ReplyHandle};
use crate::app_state::{AppState, Job};
use crate::placing;
use crate::request::ParsedRequest;
use crate::request_error::RequestError;
use crate::store::{Refused, Write};
use crate::token::Placement;

impl AppState {
    /// Passes a request to its queue, and returns the receiver of its answer. If the server closes
    /// before it answers, the sender of the answer is dropped. Returns an error if the queue is
    /// full or closed.
    pub(crate) fn offer(&self, request: ParsedRequest) -> Result<ReplyReceiver<Answer>, Refusal> {
        let (handle, answer) = self.receive(request.kind());
        match request {
            ParsedRequest::Ad(level, wanted) => {
                self.submit_page(level, handle, move |state, turn| {
                    placing::page(state, &wanted, turn).unwrap_or_else(Answer::Error)
                })?;
            }
            ParsedRequest::Click(token) => self.click(&token, handle),
            request => {
                let refuse = |job: Job| self.refuse(&job.handle);
                self.queue.push(Job { request, handle }).map_err(refuse)?;
            }
        }
        Ok(answer)
    }

    /// Passes a click to the writer, which counts it and answers after the commit. This function
    /// does not wait, so that no request of the admin API delays a click.
    fn click(&self, token: &str, handle: ReplyHandle) {
        let known = |placement: &Placement| {
            self.snapshot().register.banners.contains_key(&placement.banner)
        };
        let Some(placement) = self.key.read(token).filter(known) else {
            return self.answer(handle, Answer::Error(RequestError::Unknown("placement")));
        };
        if let Err(Refused(Write::Click(_, handle))) =
            self.write_queue.offer(Write::Click(placement, handle))
        {
            self.answer(handle, Answer::Busy);
        }
    }
}
