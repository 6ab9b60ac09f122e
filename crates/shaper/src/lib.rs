//! Limits the network use of elephants: their responses leave this machine by a lane of their own,
//! which is a traffic class of the kernel.
//!
//! Two programs use this crate, and do not communicate with each other:
//!
//! - A small program with the capability to configure devices (`bywash shaper`) installs three HTB
//!   classes on the device by which responses leave: [`install`], [`check`], [`remove`], and
//!   [`ShapedDevice`] for as long as it runs. It accepts no connections. Its arguments define what
//!   it does ([`Plan`]).
//! - The gateway assigns a connection to a class by the priority of its socket, again for each
//!   response: [`Shaper`]. If there are no classes, it lacks the capability, or the connection
//!   leaves by another device, the gateway limits the responses by a [`Bucket`]. A program without
//!   buckets can have TCP pace the connection.
//!
//! The two programs only share the state of the kernel. The classes have fixed handles. Each
//! program asks the kernel whether they exist, the gateway once a second. So no file or socket can
//! contain outdated information.
//!
//! Streams of HTTP/2 share a connection, so neither a class nor TCP could limit a single stream.
//! Only the [`Bucket`] can.

mod bitrate;
mod bucket;
mod device;
mod error;
mod htb;
mod install;
mod netlink;
mod plan;
mod route;
mod shaped_device;
mod shaper;
mod shaping;
mod sys;

pub use bitrate::{BitRate, NoBitRate};
pub use bucket::Bucket;
pub use device::{Device, NoDevice};
pub use error::ShaperError;
pub use install::{check, install, remove};
pub use plan::{NoPlan, Plan};
pub use shaped_device::ShapedDevice;
pub use shaper::{Lane, Mark, Shaper};
pub use shaping::{Shaping, Without};
