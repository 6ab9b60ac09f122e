//! Told of requests and of what was used, it says which requests are elephants, by name.
//!
//! Here the parts of `discover` come together: templates name a request's kind, some kinds have a column, and columns
//! are what costs are estimated for. Beside them stand what needs no estimate (`tally`), whose work it is (`clients`)
//! and the last minutes one by one (`recent`).
//!
//! A gateway tells of requests as they end; whoever reads a log, of requests as they stand there. Moments are on one
//! clock, and need not be now.

use bywash_discover::template::{Asked, Templates};
use bywash_discover::{Column, Discovery, Evidence, Finding, Kinds, Resource, Settings};
use bywash_engine::classify::Pattern;
use bywash_units::{Span, Time};

use crate::clients::{Client, Clients, OneClient};
use crate::effect::Gauge;
use crate::elephant::{Elephant, Resource as ConsistsOf};
use crate::entry::Entry;
use crate::held::Held;
use crate::recent::{Answers, Recent, Which};
use crate::spent::Spent;
use crate::tally::{Sum, Tally};

/// A resource that is looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// What operators call it.
    pub name: String,
    /// What it consists of.
    pub consists_of: ConsistsOf,
    /// Units of it that there are in a second.
    pub capacity: f64,
    /// Units of it that are used in a second without any request.
    pub idle: f64,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'t> {
    /// Its method.
    pub method: &'t str,
    /// Path and query.
    pub target: &'t str,
    /// Who asked.
    pub client: Client,
    /// When it was worked on, from then to then; `None`: it was refused.
    pub worked: Option<(Time, Time)>,
    /// The elephant whose rule it came under.
    pub rule: Option<u32>,
    /// How long its client waited for the whole answer; `None`: it got none.
    pub response: Option<Span>,
    /// Bytes of its answer.
    pub bytes: u64,
    /// It is a transaction.
    pub transacts: bool,
    /// It was answered, and not by saying that there is no such thing.
    pub is_good: bool,
}

/// A kind of request, and what it takes that needs no estimate. Older requests count less.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Which; nothing for all others.
    pub pattern: String,
    /// How many came in a second.
    pub rate: f64,
    /// Seconds for which one holds a slot.
    pub lasts: f64,
    /// Slots that they hold.
    pub slots: f64,
    /// Bytes of their answers in a second.
    pub bytes: f64,
    /// Of the time that they took, at most this part was one client's.
    pub by_one: f64,
    /// Who that is, if it is much.
    pub one_client: Option<OneClient>,
    /// Some of them are transactions.
    pub transacts: bool,
}

impl Part {
    fn of(pattern: String, sum: Sum, seconds: f64) -> Self {
        let each = |amount: f64, of: f64| if of > 0.0 { (amount / of).max(0.0) } else { 0.0 };
        Self {
            pattern,
            rate: each(sum.requests, seconds),
            lasts: each(sum.held, sum.requests),
            slots: each(sum.held, seconds),
            bytes: each(sum.bytes, seconds),
            ..Self::default()
        }
    }
}

/// What is counted and not read goes by these names.
pub const SLOTS: &str = "slots";
/// See [`SLOTS`].
pub const BYTES: &str = "bytes";

const SLOTS_OF: (&str, ConsistsOf) = (SLOTS, ConsistsOf::Slots);
const HELD: fn(Sum) -> f64 = |sum| sum.held;

/// Kinds of their own that a rule leaves alone: a request under it is held against each.
pub const MOST_EXEMPT: usize = 64;
/// Kinds that have not been asked for in so long hardly are.
const SETTLED: Span = Span::from_secs(900);
/// How often columns are given away anew, and older requests fade.
const WEIGHED: Span = Span::from_secs(60);
/// Of less time nothing is said.
const SOME: Span = Span::from_secs(60);
/// What was not read for so long says nothing about now.
const STALE: Span = Span::from_secs(120);
/// Of a resource that is counted, what a kind must use of its capacity to be an elephant: half of all that is asked for
/// is somebody's, and nothing of it is wrong while there is room.
const MUCH: f64 = 0.2;

/// See the module.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Each by itself: one that cannot be read leaves the others alone.
    resources: Vec<(Watched, Discovery)>,
    half_life: Span,
    templates: Templates,
    /// Of the templates when columns were last named.
    version: u64,
    kinds: Kinds<String>,
    clients: Clients,
    tally: Tally,
    held: Held,
    recent: Recent,
    weighed: Option<Time>,
    begun: Option<Time>,
    advanced: Option<Time>,
}

impl Watch {
    /// Of these resources; requests that match a pin are one kind.
    pub fn new(pins: Vec<Pattern>, resources: Vec<Watched>, half_life: Span) -> Self {
        let discovery = |watched: Watched| {
            let resource = Resource { capacity: watched.capacity, idle: watched.idle };
            let settings = Settings { half_life, ..Settings::of(vec![resource]) };
            (watched, Discovery::new(settings))
        };
        Self {
            resources: resources.into_iter().map(discovery).collect(),
            half_life,
            templates: Templates::new(pins),
            version: 0,
            kinds: Kinds::default(),
            clients: Clients::default(),
            tally: Tally::default(),
            held: Held::default(),
            recent: Recent::default(),
            weighed: None,
            begun: None,
            advanced: None,
        }
    }

    /// A request has ended at that moment.
    pub fn request(&mut self, ended: Time, seen: &Seen<'_>) {
        let Seen { method, target, client, worked, rule, response, bytes, transacts, is_good } =
            *seen;
        let took = worked.map_or(Span::ZERO, |(from, to)| to.since(from));
        let seconds = took.as_secs_f64();
        let name =
            self.templates.learn(&Asked { method, target, client: client.key, seconds, is_good });
        if self.templates.version() != self.version {
            self.rename();
        }
        let column = self.kinds.column(&name, took);
        self.recent.ended(ended, column, rule, response);
        if let Some((from, to)) = worked {
            for (_, discovery) in &mut self.resources {
                discovery.request(column, from, to);
            }
            self.clients.worked(column, client, seconds, transacts);
            self.tally.request(column, seconds, bytes as f64);
            self.held.request(column, from, to, bytes as f64);
        }
    }

    /// Names were taken back: what had one of them is no kind of its own any more.
    fn rename(&mut self) {
        self.version = self.templates.version();
        for number in 0.. {
            let Some(column) = Column::new(number) else { break };
            let Some(name) = self.kinds.name(column).cloned() else { continue };
            if self.templates.now(&name) != name {
                self.kinds.forget(&name);
                self.fold(column);
            }
        }
    }

    fn fold(&mut self, column: Column) {
        for (_, discovery) in &mut self.resources {
            discovery.fold(column);
        }
        self.clients.forget(column);
        self.tally.forget(column);
        self.held.forget(column);
        self.recent.forget(column);
    }

    /// Between these moments so many units were used of the resource of this number, as they were given.
    pub fn used(&mut self, resource: usize, from: Time, to: Time, used: f64) {
        let Some((watched, discovery)) = self.resources.get_mut(resource) else { return };
        discovery.used(from, to, &[used]);
        let share = used / (watched.capacity * to.since(from).as_secs_f64());
        if share.is_finite() {
            self.recent.used(resource, to, share);
        }
    }

    /// So far it is.
    pub fn advance(&mut self, now: Time) {
        for (_, discovery) in &mut self.resources {
            discovery.advance(now);
        }
        // It may begin long after its clock.
        self.begun.get_or_insert(now);
        let before = self.advanced.unwrap_or(now);
        self.tally.passed(now.since(before).as_secs_f64());
        self.advanced = Some(before.max(now));
        let last = *self.weighed.get_or_insert(now);
        if now.since(last) < WEIGHED {
            return;
        }
        self.weighed = Some(now);
        let part = (-now.since(last).as_secs_f64() / self.half_life.as_secs_f64()).exp2();
        self.templates.fade(part);
        self.rename();
        self.clients.fade(part);
        self.tally.fade(part);
        for column in self.kinds.weigh(part) {
            self.fold(column);
        }
    }

    /// Each resource, for how long it was seen, and the share of its capacity that was used.
    pub fn resources(&self) -> impl Iterator<Item = (&Watched, Span, f64)> {
        self.resources.iter().map(|(watched, discovery)| {
            let used = discovery.utilisation(0);
            (watched, discovery.seen(), if used.is_finite() { used } else { 0.0 })
        })
    }

    /// What was used of a resource, and what of it by each of these patterns, which cost so much a request. `slots`: as many
    /// as there are. `bytes`: as many as go out in a second, if that is known. `None`: there is no such resource.
    pub fn spent(
        &self,
        resource: &str,
        kinds: &[(&str, f64)],
        slots: f64,
        bytes: Option<f64>,
    ) -> Option<Spent> {
        let column = |pattern: &str| {
            let column = self.kinds.of(&pattern.to_owned());
            column.filter(|column| *column != Column::OTHER)
        };
        let read = self.resources.iter().find(|(watched, _)| watched.name == resource);
        if let Some((watched, discovery)) = read {
            let kinds: Vec<_> = kinds.iter().map(|(name, cost)| (column(name), *cost)).collect();
            return Some(Spent::read(watched.capacity, discovery, &kinds));
        }
        let (capacity, of) = match resource {
            SLOTS => (slots, ConsistsOf::Slots),
            BYTES => (bytes?, ConsistsOf::Bytes),
            _ => return None,
        };
        let columns: Vec<_> = kinds.iter().map(|(name, _)| column(name)).collect();
        let now = self.advanced.unwrap_or(Time::ZERO);
        Some(Spent::counted(capacity, of, &self.held, now, &columns))
    }

    /// For how long requests were counted, and the share of so many slots that they held.
    pub fn held(&self, slots: f64) -> (Span, f64) {
        let seen = self.begun.zip(self.advanced).map_or(Span::ZERO, |(from, to)| to.since(from));
        let seconds = self.tally.seconds();
        let used = if seconds > 0.0 && slots > 0.0 {
            self.tally.all().held / (slots * seconds)
        } else {
            0.0
        };
        (seen, used)
    }

    /// Every kind that is told apart, the heaviest first, and all others together.
    pub fn kinds(&self) -> (Vec<Part>, Part) {
        let seconds = self.tally.seconds();
        let mut others = self.tally.all();
        let mut kinds = Vec::new();
        for (column, sum) in self.tally.kinds() {
            let Some(pattern) = self.kinds.name(column) else { continue };
            others.take(sum);
            kinds.push(Part {
                by_one: self.clients.by_one(column),
                one_client: self.clients.one(column),
                transacts: self.clients.transacts(column),
                ..Part::of(pattern.clone(), sum, seconds)
            });
        }
        kinds.sort_by(|a, b| b.slots.total_cmp(&a.slots));
        (kinds, Part::of(String::new(), others, seconds))
    }

    /// The elephants: by resource, the largest share first; then those that are counted. `slots`: as many as there
    /// are. `bytes`: as many as go out in a second, if that is known.
    pub fn elephants(&self, slots: f64, bytes: Option<f64>) -> Vec<Elephant> {
        let mut elephants = Vec::new();
        for (watched, discovery) in &self.resources {
            let unread = self.advanced.unwrap_or(Time::ZERO).since(discovery.read_until());
            if discovery.seen() < SOME || unread > STALE {
                continue;
            }
            let found = discovery.findings();
            elephants.extend(found.iter().filter_map(|it| self.elephant(watched, discovery, it)));
        }
        elephants.extend(self.counted(SLOTS_OF, slots, HELD));
        if let Some(bytes) = bytes {
            elephants.extend(self.counted((BYTES, ConsistsOf::Bytes), bytes, |sum| sum.bytes));
        }
        elephants
    }

    fn elephant(
        &self,
        resource: &Watched,
        discovery: &Discovery,
        finding: &Finding,
    ) -> Option<Elephant> {
        let name = |column: &Column| self.kinds.name(*column).cloned();
        let correlation = discovery.correlation(finding.column, 0);
        Some(Elephant {
            pattern: name(&finding.column)?,
            twins: finding.twins.iter().filter_map(name).collect(),
            resource: resource.name.clone(),
            consists_of: resource.consists_of,
            capacity: resource.capacity,
            used: discovery.utilisation(0),
            cost: finding.cost,
            interval: finding.interval,
            share: finding.share,
            rate: finding.rate,
            lasts: self.tally.lasts(finding.column),
            provisional: finding.evidence == Evidence::Provisional,
            by_one: self.clients.by_one(finding.column),
            one_client: self.clients.one(finding.column),
            transacts: self.clients.transacts(finding.column),
            correlation: correlation
                .map(|found| [found.coefficient, found.p])
                .filter(|both| both.iter().all(|number| number.is_finite())),
        })
    }

    fn counted(
        &self,
        counted: (&str, ConsistsOf),
        capacity: f64,
        of: fn(Sum) -> f64,
    ) -> Vec<Elephant> {
        let (every, seconds) = (self.tally.all(), self.tally.seconds());
        let all = of(every);
        if all <= 0.0 || seconds <= 0.0 || capacity <= 0.0 {
            return Vec::new();
        }
        let elephant = |(column, sum): (Column, Sum)| {
            let found = self.counted_one(column, sum, counted, capacity, of)?;
            // Who takes no more than others do is a crowd of ants; while all wait, all hold slots. More than there are is held where
            // nobody is held back.
            let is_much =
                found.cost >= all / every.requests && found.share * found.used.min(1.0) >= MUCH;
            is_much.then_some(found)
        };
        let mut found: Vec<Elephant> = self.tally.kinds().filter_map(elephant).collect();
        found.sort_by(|a, b| b.share.total_cmp(&a.share));
        found
    }

    /// What one kind takes of what is counted.
    fn counted_one(
        &self,
        column: Column,
        sum: Sum,
        (resource, consists_of): (&str, ConsistsOf),
        capacity: f64,
        of: fn(Sum) -> f64,
    ) -> Option<Elephant> {
        let (all, seconds) = (of(self.tally.all()), self.tally.seconds());
        let cost = of(sum) / sum.requests;
        Some(Elephant {
            pattern: self.kinds.name(column)?.clone(),
            twins: Vec::new(),
            resource: resource.to_owned(),
            consists_of,
            capacity,
            used: all / (capacity * seconds),
            cost,
            interval: [cost; 2],
            share: of(sum) / all,
            rate: sum.requests / seconds,
            lasts: sum.held / sum.requests,
            provisional: false,
            by_one: self.clients.by_one(column),
            one_client: self.clients.one(column),
            transacts: self.clients.transacts(column),
            correlation: None,
        })
    }

    /// What a kind of this name takes of so many slots, be it much or little.
    pub fn named(&self, pattern: &str, slots: f64) -> Option<Elephant> {
        let column = self.column(pattern)?;
        let (_, sum) = self.tally.kinds().find(|(of, sum)| *of == column && sum.requests > 0.0)?;
        let found = self.counted_one(column, sum, SLOTS_OF, slots, HELD)?;
        // Of a moment nothing can be said.
        [found.cost, found.share, found.used, found.rate]
            .iter()
            .all(|x| x.is_finite())
            .then_some(found)
    }

    /// Of each of these patterns, the kinds of their own that it matches as well: more specific ones, the heaviest of
    /// them, in the order of their names.
    pub fn within(&self, patterns: &[&str]) -> Vec<Vec<String>> {
        let mut known = Vec::new();
        for name in self.kinds.by_weight() {
            // A kind without a column may have lost its name.
            if let (Ok(kind), true) = (name.parse::<Pattern>(), self.is_kind(name)) {
                known.push((kind, name));
            }
        }
        let within = |name: &&str| {
            let Ok(pattern) = name.parse::<Pattern>() else { return Vec::new() };
            let within = known.iter().filter(|(kind, _)| kind.refines(&pattern));
            let mut names: Vec<String> =
                within.map(|(_, name)| (*name).clone()).take(MOST_EXEMPT).collect();
            names.sort_unstable();
            names
        };
        patterns.iter().map(within).collect()
    }

    /// Whether a pattern is the name of a kind now. Of one that is none, what has names of its own beside it may have that
    /// name later.
    pub fn is_kind(&self, pattern: &str) -> bool {
        self.templates.now(pattern) == pattern
    }

    /// Whether it was told of requests for so long that what it does not know hardly comes.
    pub fn is_settled(&self) -> bool {
        let watched = self.begun.zip(self.advanced).map(|(from, to)| to.since(from));
        watched.is_some_and(|watched| watched >= SETTLED) && self.templates.entries() > 0
    }

    /// How it was between two moments, for requests of this elephant and for all others.
    pub fn gauge(&self, of: &Entry, from: Time, to: Time) -> Gauge {
        let name = of.found.as_ref().map(|found| &found.resource);
        let resource = self.resources.iter().position(|(watched, _)| Some(&watched.name) == name);
        self.recent.gauge(self.which(of), resource, from, to)
    }

    /// What requests of this elephant and all others got, window by window, in the last quarter of an hour or as far back as it is
    /// remembered.
    pub fn answers(&self, of: &Entry, now: Time) -> Vec<Answers> {
        self.recent.answers(self.which(of), now)
    }

    /// Whether requests of this name are told from all others, before there is a rule for them.
    pub fn tells_apart(&self, pattern: &str) -> bool {
        self.column(pattern).is_some()
    }

    fn which(&self, of: &Entry) -> Which {
        Which { column: self.column(&of.pattern), rule: of.number }
    }

    /// Of a kind that is told apart.
    fn column(&self, pattern: &str) -> Option<Column> {
        self.kinds.of(&pattern.to_owned()).filter(|column| *column != Column::OTHER)
    }
}
