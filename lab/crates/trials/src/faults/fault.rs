//! The list of faults: how long each fault lasts, and which results clients may get during it.

use super::test_bed::SERVICE;
use std::fmt;
use std::time::Duration;

use bywash_harness::open_loop::End;
use bywash_harness::upstream::Behaviour;

/// A fault of the upstream or of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Fault {
    /// The upstream crashes: its connections are reset, and new ones are refused
    Crash,
    /// The upstream is stopped: its connections are closed, and new ones are refused
    Refuse,
    /// The upstream does not answer
    Hang,
    /// The upstream takes ten times as long
    Slow,
    /// The upstream resets in the middle of an answer of known length
    Cut,
    /// The upstream closes in an orderly way in the middle of a chunked answer
    CutChunked,
    /// The upstream sends bytes that are not HTTP
    Garbage,
    /// The upstream closes its sending side instead of answering
    HalfClose,
    /// The gateway is suspended for ten seconds
    Stop,
    /// The wall clock jumps ten days forward, then twenty days back
    Clock,
    /// The disk of the access log is full
    Disk,
    /// The gateway is limited to 256 MiB, with ten times the load that can be served
    Memory,
}

impl Fault {
    /// All faults, in the order of the report.
    pub(super) const ALL: [Self; 12] = [
        Self::Crash,
        Self::Refuse,
        Self::Hang,
        Self::Slow,
        Self::Cut,
        Self::CutChunked,
        Self::Garbage,
        Self::HalfClose,
        Self::Stop,
        Self::Clock,
        Self::Disk,
        Self::Memory,
    ];

    /// Returns whether a client may get the result `end` during the fault. If part of an answer was
    /// sent, the client must see that the answer is incomplete. Requests that were in flight when
    /// the fault began may have been answered.
    pub(super) fn allows(self, end: End) -> bool {
        let allowed: &[End] = match self {
            Self::Crash | Self::Refuse | Self::Garbage | Self::HalfClose => {
                &[End::Status(200), End::Status(502), End::Status(503)]
            }
            Self::Hang => &[End::Status(200), End::Status(504), End::Status(503), End::Impatient],
            Self::Cut | Self::CutChunked => {
                &[End::Cut, End::Lost, End::Status(502), End::Status(503)]
            }
            Self::Slow | Self::Stop | Self::Memory => {
                &[End::Status(200), End::Status(503), End::Impatient]
            }
            Self::Clock | Self::Disk => &[End::Status(200)],
        };
        allowed.contains(&end)
    }

    /// Returns the cause of the fault.
    pub(super) fn cause(self) -> Cause {
        match self {
            Self::Crash => Cause::Upstream(Behaviour::Crash),
            Self::Refuse => Cause::Upstream(Behaviour::Refuse),
            Self::Hang => Cause::Upstream(Behaviour::Hang),
            Self::Slow => Cause::Upstream(Behaviour::After(SERVICE * 10)),
            Self::Cut => Cause::Upstream(Behaviour::CutLength),
            Self::CutChunked => Cause::Upstream(Behaviour::CutChunked),
            Self::Garbage => Cause::Upstream(Behaviour::Garbage),
            Self::HalfClose => Cause::Upstream(Behaviour::HalfClose),
            Self::Stop => Cause::Stop,
            Self::Clock => Cause::Clock,
            Self::Disk => Cause::Disk,
            Self::Memory => Cause::Memory,
        }
    }

    /// Returns the duration of the fault in a run.
    pub(super) fn length(self) -> Duration {
        Duration::from_secs(match self.cause() {
            Cause::Upstream(_) => 3,
            Cause::Clock | Cause::Disk | Cause::Memory => 5,
            Cause::Stop => 10,
        })
    }
}

/// The cause of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The upstream changes to this behaviour.
    Upstream(Behaviour),
    /// The gateway is stopped and continued by signals.
    Stop,
    /// A library changes the wall clock as the gateway sees it.
    Clock,
    /// The gateway has a small disk of its own, which is filled.
    Disk,
    /// A control group limits the gateway's memory, under a high load.
    Memory,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Crash => "upstream crashes",
            Self::Refuse => "upstream refuses",
            Self::Hang => "upstream hangs",
            Self::Slow => "upstream 10 × slower",
            Self::Cut => "upstream resets in an answer",
            Self::CutChunked => "upstream ends in a chunked answer",
            Self::Garbage => "upstream sends garbage",
            Self::HalfClose => "upstream half-closes",
            Self::Stop => "gateway stopped 10 s",
            Self::Clock => "clock +10 d, -10 d",
            Self::Disk => "disk of the log full",
            Self::Memory => "256 MiB, 10 × load",
        })
    }
}
