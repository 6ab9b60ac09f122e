//! An ordinary HTTP server, shared by the applications under test.
//!
//! One thread reads requests and writes answers ([`Listener`]). The application defines its pages
//! and their content ([`Application`]). Work waits in one bounded first-come-first-served [`Queue`]
//! for a fixed number of workers, which also belong to the application. The server has no overload
//! control of its own: that is the task of the gateway in front of it.
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
pub use form::Form;
pub use listener::{ListenError, Listener};
pub use queue::Queue;
pub use reply::{PendingReply, ReplyReceiver, ReplySender, reply_channel};
pub use respond::{Body, HTML, JSON, add, respond, text};
pub use sid::Sid;
pub use signals::Signals;
