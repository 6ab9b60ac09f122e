//! Measuring programs: what bywash decides, costs and notices, beside its peers.
//!
//! The programs are in `src/bin`; here are the pieces they share. Sockets are plain `std::net`
//! and epoll, because the exact bytes of a message and the exact manner of a close are what is
//! being measured, and an HTTP library would choose both for us.
//!
//! | program | promise it checks |
//! |---|---|
//! | `ghosts` | a request whose client has left is never started, a running one frees its upstream |
//! | `cost` | CPU per request no more than HAProxy's on the same machine in the same run |
//! | `decision` | a decision costs the same with ten waiting as with a million, and allocates nothing |

pub mod cost;
pub mod decision;
pub mod ghost;
pub mod http;
pub mod machine;
pub mod peer;
pub mod procfs;
pub mod proxy;
pub mod sockdiag;
pub mod stats;
pub mod sys;
pub mod table;
