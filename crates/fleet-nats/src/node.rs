//! The state machines of one gateway, without input and output.

use std::collections::BTreeMap;

use bywash_api::{Fleet as FleetStatus, FleetGateway};
use bywash_config::Fleet;
use bywash_control::Note;
use bywash_fleet::{
    Allocator, Announcement, DemandMeter, Identity, Ignored, Member, MemberId, Report, Settings,
};
use bywash_terminal::text::excerpt;
use bywash_units::{Time, TimeSpan};

use crate::documents::{self, Asked, OpenQuestions, Unread};
use crate::message::{Message, Presence, Rejected};
use crate::{Gateway, digest};

/// The number of heartbeats between two messages about the state of a gateway, in a fleet of up to
/// [`FEW`] gateways. In a larger fleet it grows with the number of gateways, because each gateway
/// receives the states of all others.
const PRESENCE_EVERY: u64 = 5;
/// The number of gateways up to which each tells its state once a second.
const FEW: u64 = 100;
/// The number of states in a row that may be missing before the last one is no longer current.
const MISSED: u64 = 3;

/// The number of states in a row that show other decisions before a gateway gets all of them. A
/// single one may have crossed a decision.
const DIFFERS: u32 = 2;

/// The number of decisions that a gateway gets at once.
const MOST_RESENT: usize = 100;

/// The time for which a gateway sends a decision again with each of its states.
const REPEATED: TimeSpan = TimeSpan::from_secs(10);

/// The difference between two wall clocks that causes no warning, in milliseconds.
const CLOCKS_AGREE: u64 = 5_000;

/// Returns the number of heartbeats between two messages about the state of a gateway.
fn presence_every(settings: Settings) -> u64 {
    PRESENCE_EVERY * u64::from(settings.gateways).div_ceil(FEW).max(1)
}

/// Returns the age from which on the state of another gateway is no longer current.
fn stale(settings: Settings) -> TimeSpan {
    settings.heartbeat * presence_every(settings) * MISSED
}

/// The receiver of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    All,
    One(MemberId),
}

/// The state machines of one gateway: it takes part in the fleet, and divides the slots if the
/// others follow it.
pub(crate) struct Node {
    me: Identity,
    settings: Settings,
    limit: u32,
    names: BTreeMap<MemberId, String>,
    member: Member,
    allocator: Allocator,
    meter: DemandMeter,
    /// The number of heartbeats since the last state of this gateway was sent.
    beats: u64,
    /// The last decisions of this gateway, and when each was made. They are sent again, because a
    /// connection may lose them.
    decided: Vec<(Note, Time)>,
    /// The state of this gateway at the last heartbeat.
    present: Presence,
    others: BTreeMap<MemberId, Other>,
    /// The number of decisions that were sent to gateways that lacked some.
    resent: usize,
    /// The documents that operators here and this gateway read at other gateways.
    open: OpenQuestions,
}

/// The last state of another gateway.
struct Other {
    presence: Presence,
    /// The time at which the state came.
    heard: Time,
    /// The time of its wall clock minus that of this gateway's clock, in milliseconds.
    clock: i64,
    /// The number of its last states in a row that showed other decisions than this gateway knows.
    differs: u32,
}

impl Other {
    fn is_current(&self, now: Time, settings: Settings) -> bool {
        now.since(self.heard) <= stale(settings)
    }
}

impl Node {
    /// Creates the node of a gateway that has just started. `id` returns the number of a name.
    pub(crate) fn new(
        now: Time,
        fleet: &Fleet,
        id: impl Fn(&str) -> MemberId,
        run: u64,
        limit: u32,
    ) -> Self {
        let me = Identity { member: id(&fleet.name), run };
        let settings = Settings::new(fleet.gateways.len() as u32);
        let names: BTreeMap<_, _> =
            fleet.gateways.iter().map(|name| (id(name), name.clone())).collect();
        let share = settings.share(limit);
        let present = Presence {
            from: me,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            limit,
            slots: 1,
            running: 0,
            waiting: 0,
            demand: 0,
            clock: 0,
            settings: 0,
            decisions: 0,
        };
        Self {
            me,
            settings,
            limit,
            member: Member::new(now, me, settings, share),
            allocator: Allocator::new(me, settings, share, names.keys().copied()),
            names,
            meter: DemandMeter::new(now),
            beats: 0,
            decided: Vec::new(),
            resent: 0,
            open: OpenQuestions::default(),
            present,
            others: BTreeMap::new(),
        }
    }

    /// Returns the terms of the fleet.
    pub(crate) const fn settings(&self) -> Settings {
        self.settings
    }

    /// Does the work of one heartbeat: reports the gateway's demand, and divides the slots if this
    /// gateway is the allocator. Appends the messages to send.
    ///
    /// `now` is at most the present time. The gateway's slots are set before its running requests
    /// are counted, and both after `now`. So the report contains each request that may hold a slot.
    pub(crate) fn beat(
        &mut self,
        now: Time,
        gateway: &impl Gateway,
        sent: &mut Vec<(To, Message)>,
    ) {
        self.set_limit(gateway.limit());
        gateway.hold(self.member.holding(now));
        let running = gateway.running();
        let offered = gateway.offered();
        let demand =
            self.meter.sample(now, offered.mean_service, &offered.arrivals, &offered.waiting);
        self.present.demand = demand.thousandths().iter().map(|slots| u64::from(*slots)).sum();
        self.present.running = running;
        self.present.waiting = offered.waiting.iter().sum();
        let announces = self.member.should_announce(now);
        let report = self.member.report(now, running, demand);
        let mut grants = Vec::new();
        self.allocator.divide(now, &mut grants);
        if announces {
            let announcement = Announcement { from: self.me };
            self.member.on_announcement(now, &announcement);
            sent.push((To::All, Message::Announcement(announcement)));
        }
        if let Some(report) = report {
            if report.to == self.me {
                // The allocator of this program knows its own gateway.
                let _ = self.on_report(now, &report, sent);
            } else {
                sent.push((To::One(report.to.member), Message::Report(report)));
            }
        }
        for grant in grants {
            if grant.to == self.me {
                self.member.on_grant(&grant);
            } else {
                sent.push((To::One(grant.to.member), Message::Grant(grant)));
            }
        }
        gateway.hold(self.member.holding(now));
        self.present.slots = self.member.slots(now);
        self.open.end_old(now);
        let is_due = self.beats.is_multiple_of(presence_every(self.settings));
        self.decided.retain(|(_, made)| now.since(*made) <= REPEATED);
        let known = if is_due { 0 } else { self.decided.len() };
        self.decided.extend(gateway.take_unsent_decisions().into_iter().map(|note| (note, now)));
        let message = |(note, _): &(Note, _)| (To::All, Message::Decision(note.clone().into()));
        sent.extend(self.decided[known..].iter().map(message));
        if is_due {
            self.present.clock = gateway.clock();
            self.present.settings = digest(&gateway.settings());
            self.present.decisions = digest(&gateway.decisions());
            sent.push((To::All, Message::Presence(self.present.clone())));
            self.send_missing_decisions(now, gateway, sent);
        }
        self.beats += 1;
    }

    /// Returns the other gateways that were heard within the last seconds, in the order of their
    /// numbers.
    pub(crate) fn current(&self, now: Time) -> Vec<(MemberId, String)> {
        let current = self.others.iter().filter(|(_, other)| other.is_current(now, self.settings));
        current.filter_map(|(member, _)| Some((*member, self.names.get(member)?.clone()))).collect()
    }

    /// Asks another gateway for a document.
    pub(crate) fn ask(&mut self, now: Time, asked: Asked, sent: &mut Vec<(To, Message)>) {
        let named = self.names.iter().find(|(_, name)| **name == asked.gateway);
        let Some(to) = named.map(|(member, _)| *member) else {
            // The operator may have gone.
            let _ = asked.answer.send(Err(Unread::Unknown));
            return;
        };
        let question = self.open.ask(now, self.me.member, to, asked);
        sent.extend(question.map(|question| (To::One(to), Message::Question(question))));
    }

    /// Has the next heartbeat send the state of this gateway.
    pub(crate) fn greet(&mut self) {
        self.beats = 0;
    }

    /// Sends all decisions to each gateway that has shown for a while that it knows others. Only the
    /// gateway with the lowest number does that, among those that know the same decisions.
    fn send_missing_decisions(
        &mut self,
        now: Time,
        gateway: &impl Gateway,
        sent: &mut Vec<(To, Message)>,
    ) {
        let (me, mine, settings) = (self.me.member, self.present.decisions, self.settings);
        let mut known = None;
        let is_first = self.others.iter().all(|(member, other)| {
            *member > me || other.presence.decisions != mine || !other.is_current(now, settings)
        });
        for (member, other) in &mut self.others {
            other.differs *= u32::from(other.presence.decisions != mine);
            if is_first && other.differs >= DIFFERS && other.is_current(now, settings) {
                other.differs = 0;
                let known = known.get_or_insert_with(|| gateway.known_decisions());
                let message =
                    |note: &Note| (To::One(*member), Message::Decision(note.clone().into()));
                // The receiver's queue is bounded, so a long list goes in several rounds.
                let next = known.iter().cycle().skip(self.resent % known.len().max(1));
                sent.extend(next.take(known.len().min(MOST_RESENT)).map(message));
                self.resent = self.resent.wrapping_add(MOST_RESENT);
            }
        }
    }

    /// Handles a message of another gateway, and appends the answers.
    ///
    /// # Errors
    /// Returns the reason why the message was ignored.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        message: Message,
        gateway: &impl Gateway,
        sent: &mut Vec<(To, Message)>,
    ) -> Result<(), Rejected> {
        match message {
            Message::Announcement(announcement) => {
                self.is_known(announcement.from)?;
                self.member.on_announcement(now, &announcement);
            }
            Message::Report(report) => return self.on_report(now, &report, sent),
            Message::Grant(grant) => {
                self.is_known(grant.from)?;
                self.member.on_grant(&grant);
                gateway.hold(self.member.holding(now));
            }
            Message::Refusal(refused) if refused == self.me => {
                self.member.on_refusal(now);
                gateway.hold(self.member.holding(now));
                return Err(Rejected::TwoRuns);
            }
            Message::Refusal(_) => {}
            Message::Presence(presence) => self.on_presence(now, presence, gateway.clock())?,
            // A decision of a gateway that has left the fleet holds as well.
            Message::Decision(note) => gateway.follow(*note),
            Message::Question(question) => {
                if !self.names.contains_key(&question.from) {
                    return Err(Rejected::Stranger);
                }
                let document = gateway.document(&question.path).unwrap_or_default();
                let parts = documents::split(self.me.member, question.number, &document);
                sent.extend(
                    parts.into_iter().map(|part| (To::One(question.from), Message::Part(part))),
                );
            }
            Message::Part(part) => self.open.take(part),
        }
        Ok(())
    }

    fn is_known(&self, from: Identity) -> Result<(), Rejected> {
        if self.names.contains_key(&from.member) { Ok(()) } else { Err(Rejected::Stranger) }
    }

    fn on_report(
        &mut self,
        now: Time,
        report: &Report,
        sent: &mut Vec<(To, Message)>,
    ) -> Result<(), Rejected> {
        match self.allocator.on_report(now, report) {
            // A report to an earlier run of this program is no fault of its sender.
            Ok(()) | Err(Ignored::NotForMe) => Ok(()),
            Err(Ignored::Stranger) => Err(Rejected::Stranger),
            Err(Ignored::Old | Ignored::UnknownGrant) => Err(Rejected::OutOfOrder),
            Err(Ignored::TwoRuns) => {
                let refused = report.from;
                if refused == self.me {
                    self.member.on_refusal(now);
                } else {
                    sent.push((To::One(refused.member), Message::Refusal(refused)));
                }
                Err(Rejected::TwoRuns)
            }
        }
    }

    fn on_presence(&mut self, now: Time, presence: Presence, clock: u64) -> Result<(), Rejected> {
        self.is_known(presence.from)?;
        if presence.from.member == self.me.member {
            let is_other = presence.from.run != self.me.run;
            return if is_other { Err(Rejected::TwoRuns) } else { Ok(()) };
        }
        let before = self.others.get(&presence.from.member).map_or(0, |other| other.differs);
        let is_other = presence.decisions != self.present.decisions;
        let differs = if is_other { before.saturating_add(1) } else { 0 };
        let clock = presence.clock.cast_signed().saturating_sub(clock.cast_signed());
        let other = Other { heard: now, clock, differs, presence };
        self.others.insert(other.presence.from.member, other);
        Ok(())
    }

    fn set_limit(&mut self, limit: u32) {
        if limit != self.limit {
            self.limit = limit;
            self.present.limit = limit;
            let share = self.settings.share(limit);
            self.member.set_share(share);
            self.allocator.set_share(share);
        }
    }

    /// Returns the gateways that may have ended: those that were not heard for a while. Returns none
    /// unless this gateway divides the slots.
    pub(crate) fn silent(&self, now: Time) -> Vec<MemberId> {
        if self.member.follows(now) != Some(self.me) {
            return Vec::new();
        }
        let is_silent = |member: &MemberId| {
            let other = self.others.get(member);
            *member != self.me.member
                && other.is_none_or(|other| !other.is_current(now, self.settings))
        };
        self.names.keys().copied().filter(is_silent).collect()
    }

    /// Notes that the program of a gateway did not run at some time between `asked` and `answered`.
    pub(crate) fn on_down(&mut self, asked: Time, answered: Time, member: MemberId) {
        self.allocator.on_down(asked, answered, member);
    }

    /// Writes the state of the fleet, as this gateway sees it, into `status`.
    pub(crate) fn describe(&self, now: Time, status: &mut FleetStatus) {
        let name = |member: &MemberId| self.names.get(member).cloned().unwrap_or_default();
        status.name = name(&self.me.member);
        status.limit = self.limit;
        status.share = self.member.share();
        status.slots = self.member.slots(now);
        status.allocator = self.member.follows(now).map(|allocator| name(&allocator.member));
        let own = [(&self.me.member, (&self.present, now))];
        let others = self.others.iter();
        let others = others.map(|(member, other)| (member, (&other.presence, other.heard)));
        let known: BTreeMap<_, _> = others.chain(own).collect();
        status.gateways = self
            .names
            .iter()
            .map(|(member, name)| {
                let is_down = self.allocator.is_down(now, *member);
                // A process that has ended has no slots.
                let known = known.get(member).filter(|_| !is_down);
                let of = |number: fn(&Presence) -> u32| known.map(|(presence, _)| number(presence));
                FleetGateway {
                    name: name.clone(),
                    is_down,
                    is_current: known.is_some_and(|(_, at)| now.since(*at) <= stale(self.settings)),
                    clock_ms: self.others.get(member).map(|other| other.clock),
                    observed_ms: None,
                    heard_ms: known.map(|(_, at)| now.since(*at).as_millis()),
                    version: known.map(|(presence, _)| presence.version.clone()),
                    limit: of(|presence| presence.limit),
                    slots: of(|presence| presence.slots),
                    running: of(|presence| presence.running),
                    waiting: of(|presence| presence.waiting),
                    demand: known.map(|(presence, _)| presence.demand as f64 / 1_000.0),
                }
            })
            .collect();
        status.warnings = self.warnings(now);
        status.gateways.sort_by(|one, other| one.name.cmp(&other.name));
    }

    /// Returns what an operator should know of the current gateways that differ from this one.
    fn warnings(&self, now: Time) -> Vec<String> {
        let mut warnings = Vec::new();
        let settings = self.settings;
        let current = self.others.iter().filter(|(_, other)| other.is_current(now, settings));
        for (member, other) in current {
            let name = self.names.get(member).map_or("", String::as_str);
            let (is, mine) = (&other.presence, &self.present);
            if is.version != mine.version {
                let version = excerpt(&is.version, 40);
                warnings.push(format!("{name} runs version {version}, not {}", mine.version));
            } else if is.limit == mine.limit && is.settings != mine.settings {
                // Only programs of one version write their settings alike.
                warnings
                    .push(format!("{name} has another configuration of its policies or classes"));
            }
            if is.limit != mine.limit {
                warnings.push(format!("{name} has the limit {}, not {}", is.limit, mine.limit));
            }
            if other.clock.unsigned_abs() > CLOCKS_AGREE {
                let side = if other.clock > 0 { "ahead of" } else { "behind" };
                warnings.push(format!(
                    "the clock of {name} is more than {} s {side} the clock here, so its decisions \
                     begin and end at other times",
                    CLOCKS_AGREE / 1_000
                ));
            }
        }
        warnings
    }
}
