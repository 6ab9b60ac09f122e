//! The event heap: what happens next in virtual time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use bywash_units::Time;

/// Something that is going to happen. Requests and visitors are named by slab index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// The next session starts.
    SessionStarts,
    /// A client of a set begins her next session.
    ClientStarts { client: u32, session: u64 },
    /// A visitor makes her next request.
    Attempt { visitor: u32 },
    /// The next adversaries of a population come.
    BurstComes { population: u32 },
    /// An adversary makes her next request.
    Intrusion { intruder: u32 },
    /// The servers are done with a request. Void if they said otherwise since.
    ServiceEnds { serial: u64 },
    /// An answer that was held up arrives. Void if `serial` is no longer the one of that slot.
    AnswerArrives { request: u32, serial: u64 },
    /// A client's patience ends. Void if `serial` is no longer the one of that slot.
    PatienceEnds { request: u32, serial: u64 },
    /// A request waits for its client, which is slow. Void if `serial` is no longer the one of that slot.
    ClientSlow { request: u32, serial: u64 },
    /// The engine asked to be called. Void if it has asked for another time since.
    EngineTimer,
    /// It is time to read the CPU.
    CpuReading,
    /// Something about the servers changes.
    ServersChange,
    /// It is time to write down how things stand.
    Trace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheduled {
    at: Time,
    /// Ties go by order of scheduling, so that a run is the same on every machine.
    number: u64,
    what: Happening,
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap pops its greatest; the earliest must be that.
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What is going to happen, earliest first.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Scheduled>,
    number: u64,
}

impl Events {
    pub(crate) fn schedule(&mut self, at: Time, what: Happening) {
        self.number += 1;
        self.heap.push(Scheduled { at, number: self.number, what });
    }

    pub(crate) fn next(&mut self) -> Option<(Time, Happening)> {
        self.heap.pop().map(|scheduled| (scheduled.at, scheduled.what))
    }

    /// Events scheduled so far.
    pub(crate) const fn count(&self) -> u64 {
        self.number
    }
}
