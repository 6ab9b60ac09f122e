//! The reasons for decisions. Logs, metrics, headers and the console all use the values of this
//! enum.

/// The reason for a decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The request got a free slot, and no request waited.
    SlotFree,
    /// The request got a slot because it ranked best of those that waited.
    Best,
    /// The request got a slot of a floor share. Such a slot goes to the class that has waited
    /// longest, or to a request under a throttle rule.
    FloorShare,
    /// The request got a slot because no other request waited. Its throttle rule lets it run only
    /// then.
    AfterOthers,
    /// The request was refused because the queue was full and no worse request waited.
    QueueFull,
    /// The waiting request was evicted because the queue was full and a better request arrived.
    Evicted,
    /// The request was refused because the queue was full and it ranked behind others. The cause of
    /// its rank was the behaviour of its session or address.
    SetBack,
    /// The request was refused because its principal already had the maximum number of waiting
    /// requests.
    PrincipalCap,
    /// The request was refused because it had waited for the maximum time.
    WaitedTooLong,
    /// The waiting request was refused because a new configuration left no place for it in the
    /// queue.
    Reconfigured,
    /// The request was refused because its wait under a throttle rule would have been too long.
    Throttled,
    /// The client closed the connection.
    ClientLeft,
    /// The request was stopped because it had run for the maximum time.
    RanTooLong,
    /// The request was stopped because others were about to be lost and it promised less than they
    /// did.
    Preempted,
    /// The request was stopped because its client was slow to send or to read. Others waited, and
    /// slow clients held more slots than they may.
    SlowClient,
    /// The request was refused because its body was too large for the memory that the gateway had
    /// left.
    MemoryFull,
}

impl Reason {
    /// All reasons, in the order in which metrics list them.
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

    /// Returns an explanation of the decision for an operator.
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

/// The outcome of a request. Each request has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The request was answered in time.
    Served,
    /// The request was answered after the patience of its class.
    Late,
    /// The request was refused before it ran.
    Shed,
    /// The request was refused because of a throttle rule that an operator approved.
    Throttled,
    /// The request was refused because it had waited for the maximum time.
    Expired,
    /// The request was stopped while it ran.
    Terminated,
    /// The client left before it had the answer.
    Orphaned,
    /// The upstream failed to answer in full.
    UpstreamError,
}

impl Outcome {
    /// All outcomes, in the order in which metrics list them.
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
