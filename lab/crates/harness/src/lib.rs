//! Parts that the measurements and trials of proxies share.
//!
//! Sockets are plain `std::net` and epoll. The measurements depend on the exact bytes of a message
//! and on how a connection is closed, and an HTTP library would choose both.

pub mod client_socket;
pub mod confine;
pub mod h2;
pub mod http;
pub mod machine;
pub mod open_loop;
pub mod peer;
pub mod procfs;
pub mod proxy;
pub mod report;
pub mod splitmix64;
pub mod stats;
pub mod sys;
pub mod table;
pub mod tls;
pub mod upstream;
