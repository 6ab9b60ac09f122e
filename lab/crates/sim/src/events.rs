//! The event heap: the future events of virtual time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use bywash_units::Time;

/// A future event. Requests and visitors are identified by slab index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimEvent {
    /// The next session starts.
    SessionStarts,
    /// A client of a set begins its next session.
    ClientStarts { client: u32, session: u64 },
    /// A visitor makes the next request.
    Attempt { visitor: u32 },
    /// The next burst of a population arrives.
    BurstComes { population: u32 },
    /// An adversary makes its next request.
    Intrusion { intruder: u32 },
    /// The servers complete a request. Void if `serial` is no longer current.
    ServiceEnds { serial: u64 },
    /// A delayed answer arrives. Void if `serial` is no longer that of the slab entry.
    AnswerArrives { request: u32, serial: u64 },
    /// A client's patience ends. Void if `serial` is no longer that of the slab entry.
    PatienceEnds { request: u32, serial: u64 },
    /// A slow client keeps its request waiting. Void if `serial` is no longer that of the slab
    /// entry.
    ClientSlow { request: u32, serial: u64 },
    /// The engine's timer fires. Void if the engine has asked for another time since.
    EngineTimer,
    /// The CPU is read.
    CpuReading,
    /// The servers change.
    ServersChange,
    /// The trace records a step.
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheduled {
    at: Time,
    /// Ties are resolved by the order of scheduling, so that a run is the same on every machine.
    number: u64,
    what: SimEvent,
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        // `BinaryHeap` pops its greatest element, which must be the earliest event.
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Future events, earliest first.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Scheduled>,
    number: u64,
}

impl EventQueue {
    pub(crate) fn schedule(&mut self, at: Time, what: SimEvent) {
        self.number += 1;
        self.heap.push(Scheduled { at, number: self.number, what });
    }

    pub(crate) fn next(&mut self) -> Option<(Time, SimEvent)> {
        self.heap.pop().map(|scheduled| (scheduled.at, scheduled.what))
    }

    /// Returns the number of events scheduled so far.
    pub(crate) const fn count(&self) -> u64 {
        self.number
    }
}
