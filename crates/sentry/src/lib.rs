//! Detects that the peer of a connection has disconnected.
//!
//! There are two interfaces for two kinds of program:
//!
//! - [`Watch`] (feature `tokio`, on by default) is an epoll set in the runtime of the thread that
//!   uses it. It is for servers with many connections that only need to know when each of them
//!   ends.
//! - [`watch`] is for all other programs. One thread per process waits for all disconnects, and
//!   reports each by a future of any runtime, a signal, an eventfd or a function. The C library
//!   `libbywash-sentry` (`native/sentry`) uses this interface.
//!
//! ```
//! # use std::{net::{TcpListener, TcpStream}, pin::pin, task::{Context, Poll, Wake, Waker}};
//! # struct Thread(std::thread::Thread);
//! # impl Wake for Thread { fn wake(self: std::sync::Arc<Self>) { self.0.unpark() } }
//! # fn block_on<F: Future>(future: F) -> F::Output {
//! #     let waker = Waker::from(std::sync::Arc::new(Thread(std::thread::current())));
//! #     let mut future = pin!(future);
//! #     loop {
//! #         match future.as_mut().poll(&mut Context::from_waker(&waker)) {
//! #             Poll::Ready(value) => return value,
//! #             Poll::Pending => std::thread::park(),
//! #         }
//! #     }
//! # }
//! use bywash_sentry::{Interest, Reason, watch};
//! # let listener = TcpListener::bind("127.0.0.1:0")?;
//! # let client = TcpStream::connect(listener.local_addr()?)?;
//! let (connection, _) = listener.accept()?;
//! let left = watch(&connection, Interest::default())?;
//! drop(client);
//! assert_eq!(block_on(left), Reason::Ended); // or next to the work, in a `select!`
//! # Ok::<(), std::io::Error>(())
//! ```

mod epoll;
mod interest;
mod key;
mod limit;
mod notice;
mod pending_events;
mod process;
mod register;
#[cfg(feature = "tokio")]
mod set;
mod sys;
mod table;
mod watcher;
mod watching;

pub use interest::{Interest, Reason, Refused};
pub use limit::raise_file_limit;
pub use notice::{Notice, Signal};
pub use register::{unwatch, watch_with_notice};
#[cfg(feature = "tokio")]
pub use set::{Departure, Watch};
pub use sys::{Unsignalled, unacknowledged};
pub use watching::{Watching, watch};
