//! Sees the other side of a connection leave.
//!
//! Two ways to be told, for two kinds of program:
//!
//! - [`Watch`] (feature `tokio`, on by default) is an epoll set in the runtime of the thread that
//!   uses it: for a server with many connections whose only interest is when each of them ends.
//! - [`watch`] is for everybody else: one thread for the process waits for all departures, and
//!   tells each to whoever asked, by a future of any runtime, a signal, an eventfd or a function.
//!   The C library `libbywash-sentry` (`native/sentry`) is this.
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
//! assert_eq!(block_on(left), Reason::Ended); // or beside the work, in a `select!`
//! # Ok::<(), std::io::Error>(())
//! ```

mod epoll;
mod interest;
mod limit;
mod notice;
mod process;
#[cfg(feature = "tokio")]
mod set;
mod sys;
mod table;
mod watcher;
mod watching;

pub use interest::{Interest, Reason, Refused};
pub use limit::raise_file_limit;
pub use notice::{Notice, Signal};
#[cfg(feature = "tokio")]
pub use set::{Departure, Watch};
pub use sys::{Unsignalled, unacknowledged};
pub use table::{told_by_notice, unwatch};
pub use watching::{Watching, watch};
