//! Programs that measure the decisions, the costs and the reactions of bywash and of its peers.
//!
//! The programs are in `src/bin`; here are the pieces they share. Sockets are plain `std::net`
//! and epoll, because the exact bytes of a message and the exact manner of a close are what is
//! being measured, and an HTTP library would choose both for us.
//!
//! | program | promise it checks |
//! |---|---|
//! | `ghosts` | a request whose client has left is never started, a running one frees its upstream |
//! | `cost` | CPU per request no more than HAProxy's on the same machine in the same run |
//! | `cost latency` | what is added to a request's time at a load that it hardly notices |
//! | `cost memory` | 14 KiB for an idle connection, 18 KiB for a waiting request |
//! | `survival floods` | a flood costs others nothing and is cut: frames, slow heads, descriptors |
//! | `survival updown` | no request fails by a reload or an upgrade; after a kill 50 ms |
//! | `survival faults` | whatever fails, the stated answer, no slot lost, normal after 2 s |
//! | `survival pulse` | ten times the load for a minute is forgotten in 10 s |
//! | `attacks` | visitors keep their useful work while hostile clients do their worst |
//! | `decision` | a decision costs the same with ten waiting as with a million, and allocates nothing |
//! | `learned` | the engine's lock is held for microseconds while ten million sessions are copied |
//! | `orphans` | a query ends when its client leaves, another's never; a storm costs nothing |
//! | `levels` | a task costs what it does in rayon; a ratio and a percentile hold when the pool is full |
//! | `lanes` | ants do not wait behind elephants on a full line, by each way to hold elephants back |
//! | `cores` | sharing the engine among threads costs a request little, and how far that goes |
//! | `differential` | gateway and origin understand the same, whatever a client sends |

pub mod attacks;
pub mod confine;
pub mod cores;
pub mod cost;
pub mod decision;
pub mod dial;
pub mod differential;
pub mod faults;
pub mod floods;
pub mod ghost;
pub mod h2;
pub mod hostile;
pub mod http;
pub mod lanes;
pub mod latency;
pub mod levels;
pub mod machine;
pub mod memory;
pub mod open_loop;
pub mod orphans;
pub mod peer;
pub mod procfs;
pub mod proxy;
pub mod pulse;
pub mod report;
pub mod sockdiag;
pub mod stats;
pub mod sys;
pub mod table;
pub mod tls;
pub mod updown;
pub mod upstream;
