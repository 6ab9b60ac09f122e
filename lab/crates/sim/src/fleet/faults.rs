//! Faults of the gateways of a fleet, one gateway at a time.
//!
//! A wall clock that jumps is not one of them. No message has a time of day, and a gateway measures
//! its lease with a clock that never jumps, so a jump changes nothing.

use bywash_fleet::{Member, MemberId};
use bywash_units::Time;

use super::event::FleetEvent;
use super::world::{Gateway, World};

/// The number of heartbeats for which a gateway is silent before others try the port that shows
/// whether its process lives.
const SILENT: u64 = 15;

/// A fault of a gateway.
///
/// The application always completes the requests that it has begun. They count as running until
/// then. So after a fault more requests than slots can run, if some take longer than a pledge lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The network loses all messages between the gateway and the others.
    CutOff,
    /// A signal stops the gateway: it handles no message, no request and no end of its lease. Its
    /// visitors wait. It continues with what it knew when it stopped.
    Stopped,
    /// The gateway ends at once, and a new run begins later. Its requests fail. Until the new run
    /// begins, a load balancer spreads its visitors over the other gateways. Its closed port proves
    /// its end to the allocator (`fleet.liveness`).
    Killed,
    /// The busiest gateway leaves and comes back, again and again. While it is away, it serves the
    /// requests that wait, and the other gateways get its new visitors. The requests that are left
    /// when it comes back fail, as after `stop.grace`.
    Drained,
}

impl World {
    /// Ends the present fault. The next gateway has the next one.
    pub(super) fn fault_moves(&mut self) {
        let Some((fault, lasts)) = self.case.faults else { return };
        self.recovers = self.now + lasts;
        self.events.schedule(self.recovers, FleetEvent::FaultMoves);
        let last = self.gateways.len() - 1;
        let recovered = self.failing;
        self.failing = match (fault, recovered) {
            (Fault::Drained, recovered) => recovered.is_none().then_some(last),
            (_, Some(before)) if before < last => Some(before + 1),
            _ => Some(0),
        };
        match (fault, recovered) {
            // A gateway looks at the end of its lease before it starts a request.
            (Fault::Stopped, Some(gateway)) => self.set_slots(gateway),
            (Fault::Killed | Fault::Drained, Some(gateway)) => self.restart(gateway),
            (Fault::CutOff, _) | (_, None) => {}
        }
        match (fault, self.failing) {
            (Fault::Killed, Some(gateway)) => self.restart(gateway),
            (Fault::Drained, Some(gateway)) => self.drain(gateway),
            (Fault::CutOff | Fault::Stopped, _) | (_, None) => {}
        }
    }

    /// Replaces a gateway by a new run, which has no requests.
    fn restart(&mut self, gateway: usize) {
        let share = self.settings.share(self.case.slots);
        self.gateways[gateway] = Gateway::new(self.now, gateway as u64, self.settings, share);
        self.set_slots(gateway);
    }

    /// Leaves a gateway its own share, or less if it has lent slots, until it ends.
    fn drain(&mut self, gateway: usize) {
        let member = &mut self.gateways[gateway].member;
        let slots = member.slots(self.now).min(member.share());
        // A gateway that started long ago and hears nothing has what it owns.
        *member = Member::new(Time::ZERO, member.identity(), self.settings, slots);
        self.set_slots(gateway);
    }

    /// Proves to the allocator that a gateway was killed, after the gateway's silence.
    pub(super) fn prove_down(&mut self, allocator: usize) {
        let (Some((Fault::Killed, lasts)), Some(down)) = (self.case.faults, self.failing) else {
            return;
        };
        let at = &mut self.gateways[allocator];
        let divides = at.member.follows(self.now) == Some(at.member.identity());
        if divides && self.now + lasts > self.recovers + self.settings.heartbeat * SILENT {
            at.allocator.on_down(self.now, self.now, MemberId(down as u64));
        }
    }

    /// Returns whether a gateway has this fault now.
    pub(super) fn has(&self, fault: Fault, gateway: usize) -> bool {
        self.failing == Some(gateway) && self.case.faults.is_some_and(|(now, _)| now == fault)
    }

    /// Returns whether a gateway takes no new requests and no messages.
    pub(super) fn is_away(&self, gateway: usize) -> bool {
        self.has(Fault::Killed, gateway) || self.has(Fault::Drained, gateway)
    }
}
