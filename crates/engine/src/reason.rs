//! The reason for a decision, as an enum: logs, metrics, headers and the console read the same
//! value.

/// The reason for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A slot was free and no request waited.
    SlotFree,
    /// The request was the best of those that waited.
    Best,
    /// The slot belonged to the floor share. It went to the class that had waited longest, or to a
    /// request under a rule.
    FloorShare,
    /// A rule lets requests of this route run only when no other request waits, and none did.
    AfterOthers,
    /// The queue was full and no worse request waited in it.
    QueueFull,
    /// The queue was full and a better request arrived, so this one was evicted.
    Evicted,
    /// The queue was full, and the request ranked behind others because of the behaviour of its
    /// session or address.
    SetBack,
    /// The principal had as many requests waiting as one principal may.
    PrincipalCap,
    /// The request had waited for the longest time allowed.
    WaitedTooLong,
    /// The request waited, and a new configuration left no place for it in the queue.
    Reconfigured,
    /// A rule limits requests of this route, and the request would have had to wait too long.
    Throttled,
    /// The client closed the connection.
    ClientLeft,
    /// The request was stopped because it had run for the longest time allowed.
    RanTooLong,
    /// The request was preempted: others were about to be lost, and its remaining run promised
    /// less.
    Preempted,
    /// The request was stopped: its client was slow to send or to read, others waited, and slow
    /// clients held more slots than they may.
    SlowClient,
    /// The request's body was too large for the memory that the gateway had left.
    MemoryFull,
}

impl Reason {
    /// All reasons, for tables of metrics.
    pub const ALL: [Self; 16] = [
        Self::SlotFree,
        Self::Best,
        Self::FloorShare,
        Self::AfterOthers,
        Self::QueueFull,
        Self::Evicted,
        Self::SetBack,
        Self::PrincipalCap,
        Self::WaitedTooLong,
        Self::Reconfigured,
        Self::Throttled,
        Self::ClientLeft,
        Self::RanTooLong,
        Self::Preempted,
        Self::SlowClient,
        Self::MemoryFull,
    ];

    /// Returns the name that logs, metrics and headers use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlotFree => "slot_free",
            Self::Best => "best",
            Self::FloorShare => "floor_share",
            Self::AfterOthers => "after_others",
            Self::QueueFull => "queue_full",
            Self::Evicted => "evicted",
            Self::SetBack => "set_back",
            Self::PrincipalCap => "principal_cap",
            Self::WaitedTooLong => "waited_too_long",
            Self::Reconfigured => "reconfigured",
            Self::Throttled => "throttled",
            Self::ClientLeft => "client_left",
            Self::RanTooLong => "ran_too_long",
            Self::Preempted => "preempted",
            Self::SlowClient => "slow_client",
            Self::MemoryFull => "memory_full",
        }
    }

    /// Returns an explanation for an operator who reads a refusal.
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::SlotFree => "A slot was free and no request waited.",
            Self::Best => "It was the best of the waiting requests.",
            Self::FloorShare => {
                "Its class, or the rule that applies to it, had waited longest; each class and \
                 rule gets a floor share."
            }
            Self::AfterOthers => {
                "A rule lets requests of its route run only while no other request waits, and none \
                 did."
            }
            Self::QueueFull => "The queue was full, and no worse request waited in it.",
            Self::Evicted => {
                "The queue was full, and a better request arrived, so this one was evicted."
            }
            Self::SetBack => {
                "The queue was full, and it ranked behind others because of its session or \
                 address. Either requests of that session or address were stopped because their \
                 clients were slow, or it repeated refused requests again and again, or it held \
                 its share of the slots, or slow clients held the slots and nothing was known of \
                 it."
            }
            Self::PrincipalCap => {
                "Its session or address had as many requests waiting as one may \
                 (`scheduler.principal_cap`)."
            }
            Self::WaitedTooLong => "It had waited for the longest time that a request may wait.",
            Self::Reconfigured => "A new configuration left no place for it in the queue.",
            Self::Throttled => {
                "An approved rule limits requests of its route, and it would have had to wait \
                 longer than the rule allows."
            }
            Self::ClientLeft => "Its client closed the connection.",
            Self::RanTooLong => "It had run for the longest time that its class allows.",
            Self::MemoryFull => {
                "The gateway had no memory left for its body (`client_limits.memory`)."
            }
            Self::Preempted => {
                "Waiting requests were about to be lost, and the rest of its own run promised less \
                 than theirs."
            }
            Self::SlowClient => {
                "Its client was slow to send or to read, other requests waited, and slow clients \
                 held more slots than they may (`queue.slow_share`)."
            }
        }
    }
}

/// The outcome of a request: each has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Answered in time.
    Served,
    /// Answered after the client's patience had run out.
    Late,
    /// Refused before it ran.
    Shed,
    /// Refused because of a rule that an operator approved.
    Throttled,
    /// Refused because it had waited longer than a request may.
    Expired,
    /// Stopped while it ran.
    Terminated,
    /// The client left.
    Orphaned,
    /// The upstream failed.
    UpstreamError,
}

impl Outcome {
    /// All outcomes, for tables of metrics.
    pub const ALL: [Self; 8] = [
        Self::Served,
        Self::Late,
        Self::Shed,
        Self::Throttled,
        Self::Expired,
        Self::Terminated,
        Self::Orphaned,
        Self::UpstreamError,
    ];

    /// Returns the name that logs and metrics use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Late => "late",
            Self::Shed => "shed",
            Self::Throttled => "throttled",
            Self::Expired => "expired",
            Self::Terminated => "terminated",
            Self::Orphaned => "orphaned",
            Self::UpstreamError => "upstream_error",
        }
    }
}
