//! The events of a fleet in virtual time.

#[derive(Clone, Copy, Debug)]
pub(super) enum FleetEvent {
    /// The next request arrives.
    Arrives,
    /// A request reaches its gateway.
    Requested { gateway: usize, request: u32 },
    /// A visitor's patience ends. The event is void if `serial` is no longer that of the request.
    PatienceEnds { gateway: usize, request: u32, serial: u64 },
    /// The application has answered a request.
    ServiceEnds { gateway: usize, request: u32, serial: u64 },
    /// The answer reaches the gateway. The event is void if `serial` is no longer that of the request.
    Answered { gateway: usize, request: u32, serial: u64 },
    /// The timer of a gateway's engine fires.
    EngineTimer { gateway: usize },
    /// A gateway reports, and divides slots if it is the allocator.
    Heartbeat { gateway: usize },
    /// A lease or a pledge of a gateway ends. The event is void if the gateway expects another time.
    LeaseEnds { gateway: usize },
    /// A message between gateways arrives.
    MessageArrives { gateway: usize, message: u32 },
    /// The arrivals at all gateways change places.
    TrafficMoves,
    /// The next gateway has the fault, and the last one has recovered.
    FaultMoves,
}

impl FleetEvent {
    /// Returns the gateway that handles the event, if a gateway does.
    pub(super) const fn gateway(self) -> Option<usize> {
        match self {
            Self::Requested { gateway, .. }
            | Self::PatienceEnds { gateway, .. }
            | Self::Answered { gateway, .. }
            | Self::EngineTimer { gateway }
            | Self::Heartbeat { gateway }
            | Self::LeaseEnds { gateway }
            | Self::MessageArrives { gateway, .. } => Some(gateway),
            Self::Arrives | Self::ServiceEnds { .. } | Self::TrafficMoves | Self::FaultMoves => {
                None
            }
        }
    }
}
