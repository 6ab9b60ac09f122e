//! The future events of virtual time, in a priority queue.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use bywash_units::Time;

/// A future event. Its fields identify requests, visitors and adversaries by slab index. An event
/// with an outdated `serial` is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimEvent {
    /// The next session starts.
    SessionStarts,
    /// The permanent client of a set begins its next session.
    ClientStarts { client: u32, session: u64 },
    /// A visitor makes its next request.
    Attempt { visitor: u32 },
    /// The next burst of an adversary population arrives.
    BurstComes { population: u32 },
    /// An adversary makes its next request.
    Intrusion { intruder: u32 },
    /// The servers complete a request. The event is ignored if the servers have scheduled another
    /// completion since, with another `serial`.
    ServiceEnds { serial: u64 },
    /// A delayed answer arrives. The event is ignored unless `serial` is that of the request in the
    /// slab entry.
    AnswerArrives { request: u32, serial: u64 },
    /// A client's patience ends. The event is ignored unless `serial` is that of the request in the
    /// slab entry.
    PatienceEnds { request: u32, serial: u64 },
    /// The gateway checks a slow client, which keeps its request from ending. The event is ignored
    /// unless `serial` is that of the request in the slab entry.
    ClientSlow { request: u32, serial: u64 },
    /// The engine's timer fires. The event is ignored if the engine has asked for another time
    /// since.
    EngineTimer,
    /// The engine gets a reading of the CPU use.
    CpuReading,
    /// A property of the servers changes.
    ServersChange,
    /// The trace records the end of a step.
    Trace,
}

#[derive(Clone, Copy, Debug)]
struct Scheduled<E> {
    at: Time,
    /// The number of the event in the order of scheduling. Events at the same time come in the
    /// order of their numbers, so that a run is the same on every machine.
    number: u64,
    what: E,
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Scheduled<E> {}

impl<E> Ord for Scheduled<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        // `BinaryHeap` pops its greatest element, which must be the earliest event.
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The future events of one kind, earliest first.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    heap: BinaryHeap<Scheduled<E>>,
    number: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), number: 0 }
    }
}

impl<E> EventQueue<E> {
    pub(crate) fn schedule(&mut self, at: Time, what: E) {
        self.number += 1;
        self.heap.push(Scheduled { at, number: self.number, what });
    }

    pub(crate) fn next(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|scheduled| (scheduled.at, scheduled.what))
    }

    /// Returns the number of events scheduled so far.
    pub(crate) const fn count(&self) -> u64 {
        self.number
    }
}
