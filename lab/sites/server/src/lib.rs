//! An ordinary HTTP server, which the applications under test share.
//!
//! One thread reads requests and writes answers ([`Listener`]); which pages there are, and what they say, is the
//! application's ([`Application`]). Work waits in one bounded first-come-first-served [`Queue`] for a fixed number of
//! workers, which are the application's too. There is nothing clever about overload here: that belongs in front.
#![forbid(unsafe_code)]

mod application;
mod body;
mod connection;
mod form;
mod listener;
mod queue;
mod reply;
mod respond;
mod sid;
mod signals;

pub use application::{Application, Refusal};
pub use body::{BodyError, MAX_BODY};
pub use connection::Body;
pub use form::Form;
pub use listener::{ListenError, Listener};
pub use queue::Queue;
pub use reply::{PendingReply, ReplyReceiver, ReplySender, reply_channel};
pub use respond::{HTML, JSON, add, respond, text};
pub use sid::Sid;
pub use signals::Signals;
