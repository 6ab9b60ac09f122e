//! The faults by name: how long each lasts and what clients may get meanwhile.

use super::test_bed::SERVICE;
use std::fmt;
use std::time::Duration;

use bywash_harness::open_loop::End;
use bywash_harness::upstream::Behaviour;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Fault {
    /// The upstream dies: connections are reset, new ones refused.
    Crash,
    /// The upstream is stopped: connections are closed, new ones refused.
    Refuse,
    /// The upstream says nothing.
    Hang,
    /// The upstream takes ten times as long.
    Slow,
    /// The upstream resets in the middle of an answer of known length.
    Cut,
    /// The upstream ends in the middle of a chunked answer, in an orderly way.
    CutChunked,
    /// The upstream sends what is not HTTP.
    Garbage,
    /// The upstream closes its sending side instead of answering.
    HalfClose,
    /// The gateway stands still for ten seconds.
    Stop,
    /// The wall clock jumps ten days ahead, then twenty back.
    Clock,
    /// The disk that the access log is on is full.
    Disk,
    /// The gateway may have 256 MiB, and ten times the load that can be served comes.
    Memory,
}

impl Fault {
    /// All, in the order of the report.
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

    /// Whether a client may get this meanwhile. A part of an answer must end as a part, if any of
    /// it was sent; what was under way when a fault began may still have been answered.
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

    /// Who does what.
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

    /// How long it lasts.
    pub(super) fn length(self) -> Duration {
        Duration::from_secs(match self.cause() {
            Cause::Upstream(_) => 3,
            Cause::Clock | Cause::Disk | Cause::Memory => 5,
            Cause::Stop => 10,
        })
    }
}

/// What makes a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The upstream, by behaving so.
    Upstream(Behaviour),
    /// Signals.
    Stop,
    /// A library between the gateway and the wall clock.
    Clock,
    /// A disk of the gateway's own.
    Disk,
    /// A control group, and the load.
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
