//! Elephants whose answers fill the network get a lane of their own on the way out of this machine.
//!
//! Two programs share it, and say nothing to each other:
//!
//! - A small one with the right to configure devices (`bywash shaper`) installs three classes of HTB on
//!   the device by which answers leave: [`install`], [`check`], [`remove`], and [`Held`] for as long
//!   as it runs. It listens to nobody. What it may do is in its arguments ([`Plan`]).
//! - The gateway puts a connection into one of them by the priority of its socket, for each response
//!   anew: [`Shaper`]. Where there are no classes, or it lacks the right, or the connection leaves by
//!   another device, it holds them back by a [`Bucket`]; who has none can have TCP pace the
//!   connection.
//!
//! The kernel is what they share: the classes have fixed numbers, and whoever wants to know whether
//! they are there asks it, every second. So no file and no socket can say anything that is not true.
//!
//! Streams of HTTP/2 share a connection, where neither a class nor TCP would hit the right one: for them
//! there is only the [`Bucket`].

mod bitrate;
mod bucket;
mod device;
mod error;
mod held;
mod htb;
mod install;
mod netlink;
mod plan;
mod route;
mod shaper;
mod shaping;
mod sys;

pub use bitrate::{BitRate, NoBitRate};
pub use bucket::Bucket;
pub use device::{Device, NoDevice};
pub use error::ShaperError;
pub use held::Held;
pub use install::{check, install, remove};
pub use plan::{NoPlan, Plan};
pub use shaper::{Lane, Mark, Shaper};
pub use shaping::{Shaping, Without};
