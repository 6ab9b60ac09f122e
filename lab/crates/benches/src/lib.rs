//! Measurements of the decisions, the costs and the latency of bywash and of its peers.
//!
//! The programs are in `src/bin`.
//!
//! | program | promise that it checks |
//! |---|---|
//! | `cost` | CPU per request no more than HAProxy's on the same machine in the same run |
//! | `cost latency` | the gateway adds little time to a request at a low load |
//! | `cost memory` | 14 KiB for an idle connection, 18 KiB for a waiting request |
//! | `decision` | a decision costs the same with ten waiting as with a million, no allocations |
//! | `learned` | the engine's lock is held for microseconds while ten million sessions are copied |
//! | `levels` | a task costs as much as in rayon; a ratio and a percentile hold in a full pool |
//! | `lanes` | ants do not wait behind elephants on a full line, with each throttling method |
//! | `discovery` | the time of the search for elephants |

pub mod cost;
pub mod decision;
pub mod lanes;
pub mod latency;
pub mod levels;
pub mod memory;
