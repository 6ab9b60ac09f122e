//! Trials of conformance, faults and hostile clients, with bywash and with its peers.
//!
//! The programs are in `src/bin`.
//!
//! | program | promise that it checks |
//! |---|---|
//! | `differential` | the gateway and the application understand each message in the same way |
//! | `attacks` | visitors keep their useful work during an attack |
//! | `ghosts` | a request whose client has left never starts; a running one frees its upstream |
//! | `orphans` | a departed client's query ends, and no other does; a storm costs nothing |
//! | `survival floods` | a flood costs others nothing and is cut: frames, slow heads, descriptors |
//! | `survival updown` | reloads and upgrades fail no request; after a kill, it accepts within 50 ms |
//! | `survival faults` | a fault gets the stated answer, loses no slot, and is over after 2 s |
//! | `survival pulse` | after a minute of ten times the load, service recovers in 10 s |

pub mod attacks;
pub mod differential;
pub mod faults;
pub mod floods;
pub mod ghost;
pub mod hostile;
pub mod orphans;
pub mod pulse;
pub mod sockdiag;
pub mod updown;
