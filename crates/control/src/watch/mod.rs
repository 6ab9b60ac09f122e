//! Receives requests and the use of resources, and reports which routes are elephants.
//!
//! This module combines the parts of the crate `discover`. Templates give each request the name of
//! its route. Some routes have a column of their own in the statistics, and costs are estimated for
//! columns. The module also keeps sums that need no estimate (`tally`), the clients that cause the
//! work (`clients`), and the last minutes request by request (`recent`).
//!
//! A gateway reports requests as they end. A log reader reports them in the order of the log. All
//! times are of one clock, which may show a time in the past.

mod elsewhere;

use bywash_discover::template::{Sample, Templates};
use bywash_discover::{Column, Discovery, Evidence, Finding, Resource, Routes, Settings};
use bywash_engine::classify::Pattern;
use bywash_units::{Time, TimeSpan};

use crate::clients::{Client, Clients};
use crate::effect::Gauge;
use crate::elephant::{Elephant, Resource as ConsistsOf};
use crate::entry::Entry;
use crate::part::Part;
use crate::recent::{Answers, Recent, Which};
use crate::slot_use::SlotUse;
use crate::spent::Spent;
use crate::tally::{Sum, Tally};
use elsewhere::{LastSeconds, RoutesElsewhere};

pub use elsewhere::{OLDEST as OLDEST_SECOND, RouteSum, Second};

/// A resource whose use is watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// The name by which operators know the resource.
    pub name: String,
    /// The kind of units that the resource consists of.
    pub consists_of: ConsistsOf,
    /// The capacity, in units of the resource per second.
    pub capacity: f64,
    /// The use of the resource without any request, in units per second.
    pub idle: f64,
}

/// A request that has ended, to be added to the watch.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'t> {
    /// The method of the request.
    pub method: &'t str,
    /// The path and query of the request.
    pub target: &'t str,
    /// The client that sent the request.
    pub client: Client,
    /// When work on the request began and ended; `None` if the request was rejected.
    pub worked: Option<(Time, Time)>,
    /// The number of the elephant whose rule applied to the request; `None` if no rule applied.
    pub rule: Option<u32>,
    /// How long the client waited for the complete response; `None` if it got none.
    pub response: Option<TimeSpan>,
    /// The number of bytes of the response.
    pub bytes: u64,
    /// Whether the request is a transaction.
    pub transacts: bool,
    /// Whether the requested page exists: the request was answered, and the status does not say
    /// otherwise.
    pub is_good: bool,
}

/// The name of the slots as a resource. The use of slots is counted from requests, not read.
pub const SLOTS: &str = "slots";
/// The name of the bytes of responses as a resource. Their use is counted from requests, not read.
pub const BYTES: &str = "bytes";

const SLOTS_OF: (&str, ConsistsOf) = (SLOTS, ConsistsOf::Slots);
const HELD: fn(Sum) -> f64 = |sum| sum.held;

/// The maximum number of other routes that a rule can exempt. The bound exists because each request
/// under the rule is matched against all of them.
pub const MOST_EXEMPT: usize = 64;
/// The time after which the watch is settled. A route that was not requested within this time is
/// rarely requested.
const SETTLED: TimeSpan = TimeSpan::from_secs(900);
/// The interval at which columns are reassigned and older requests lose weight.
const REASSIGN_INTERVAL: TimeSpan = TimeSpan::from_secs(60);
/// The minimum observation time of a resource. Before that, none of its elephants are reported.
const MIN_OBSERVATION: TimeSpan = TimeSpan::from_secs(60);
/// The time after which a reading is stale. If a resource was not read for this long, none of its
/// elephants are reported.
const STALE: TimeSpan = TimeSpan::from_secs(120);
/// The minimum fraction of the capacity of a counted resource (slots or bytes) that an elephant
/// uses. A route with a smaller use does not count as an elephant: even half of the total use does
/// no harm while capacity is left.
const MIN_COUNTED_USE: f64 = 0.2;

/// The evidence about all routes. See the documentation of the module.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The watched resources. Each has its own discovery, so a resource that cannot be read does
    /// not affect the others.
    resources: Vec<(Watched, Discovery)>,
    half_life: TimeSpan,
    templates: Templates,
    /// The version of the templates when the names of the columns' routes were last checked.
    version: u64,
    routes: Routes<String>,
    clients: Clients,
    tally: Tally,
    held: SlotUse,
    last_seconds: LastSeconds,
    elsewhere: RoutesElsewhere,
    recent: Recent,
    weighed: Option<Time>,
    begun: Option<Time>,
    advanced: Option<Time>,
}

impl Watch {
    /// Creates a watch of these resources. All requests that match the same pattern of
    /// `always_track` form one route. `half_life` is the time after which an observation counts
    /// half.
    pub fn new(always_track: Vec<Pattern>, resources: Vec<Watched>, half_life: TimeSpan) -> Self {
        let discovery = |watched: Watched| {
            let resource = Resource { capacity: watched.capacity, idle: watched.idle };
            let settings = Settings { half_life, ..Settings::of(vec![resource]) };
            (watched, Discovery::new(settings))
        };
        Self {
            resources: resources.into_iter().map(discovery).collect(),
            half_life,
            templates: Templates::new(always_track),
            version: 0,
            routes: Routes::default(),
            clients: Clients::default(),
            tally: Tally::default(),
            held: SlotUse::default(),
            last_seconds: LastSeconds::default(),
            elsewhere: RoutesElsewhere::default(),
            recent: Recent::default(),
            weighed: None,
            begun: None,
            advanced: None,
        }
    }

    /// Adds a request that ended at `ended`.
    pub fn request(&mut self, ended: Time, seen: &Seen<'_>) {
        let Seen { method, target, client, worked, rule, response, bytes, transacts, is_good } =
            *seen;
        let took = worked.map_or(TimeSpan::ZERO, |(from, to)| to.since(from));
        let seconds = took.as_secs_f64();
        let key = client.key;
        let asked = Sample { method, target, client: key, address: key, seconds, is_good };
        let name = self.templates.learn(&asked);
        if self.templates.version() != self.version {
            self.rename();
        }
        let column = self.routes.column(&name, took);
        self.recent.ended(ended, column, rule, response);
        if let Some((from, to)) = worked {
            for (_, discovery) in &mut self.resources {
                discovery.request(column, from, to);
            }
            self.clients.worked(column, client, seconds, transacts);
            self.tally.request(column, seconds, bytes as f64);
            self.held.request(column, from, to, bytes as f64);
            self.last_seconds.request(column, seconds);
        }
    }

    /// Forgets the routes whose names the templates have withdrawn and that no other gateway
    /// reports. Their earlier requests then count for the other routes.
    fn rename(&mut self) {
        self.version = self.templates.version();
        for number in 0.. {
            let Some(column) = Column::new(number) else { break };
            let Some(name) = self.routes.name(column).cloned() else { continue };
            if self.templates.now(&name) != name && !self.elsewhere.has(&name) {
                self.routes.forget(&name);
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
        self.last_seconds.fold(column);
        self.recent.forget(column);
    }

    /// Adds `used` units of a resource, used from `from` to `to`. `resource` is the index of the
    /// resource. An unknown index has no effect.
    pub fn used(&mut self, resource: usize, from: Time, to: Time, used: f64) {
        let Some((watched, discovery)) = self.resources.get_mut(resource) else { return };
        discovery.used(from, to, &[used]);
        let share = used / (watched.capacity * to.since(from).as_secs_f64());
        if share.is_finite() {
            self.recent.used(resource, to, share);
        }
    }

    /// Advances the watch's clock to `now`. Once a minute, reassigns the columns and reduces the
    /// weight of older requests.
    pub fn advance(&mut self, now: Time) {
        for (_, discovery) in &mut self.resources {
            discovery.advance(now);
        }
        // The clock may already have run for long when the watch begins.
        self.begun.get_or_insert(now);
        let before = self.advanced.unwrap_or(now);
        self.tally.passed(now.since(before).as_secs_f64());
        self.last_seconds
            .end(now, |column| (self.routes.name(column).cloned(), self.clients.transacts(column)));
        self.advanced = Some(before.max(now));
        let last = *self.weighed.get_or_insert(now);
        if now.since(last) < REASSIGN_INTERVAL {
            return;
        }
        self.weighed = Some(now);
        let part = (-now.since(last).as_secs_f64() / self.half_life.as_secs_f64()).exp2();
        self.templates.fade(part);
        self.elsewhere.forget_old(now);
        self.rename();
        self.clients.fade(part);
        self.tally.fade(part);
        for column in self.routes.weigh(part) {
            self.fold(column);
        }
    }

    /// Returns each resource with the time for which it was observed and the fraction of its
    /// capacity that is used.
    pub fn resources(&self) -> impl Iterator<Item = (&Watched, TimeSpan, f64)> {
        self.resources.iter().map(|(watched, discovery)| {
            let used = discovery.utilisation(0);
            (watched, discovery.seen(), if used.is_finite() { used } else { 0.0 })
        })
    }

    /// Returns the use of a resource over time, in total and by each of `routes`, which are
    /// patterns with the cost of a request. `slots` is the number of slots. `bytes` is the capacity
    /// of the line in bytes per second, if known. Returns `None` if there is no such resource.
    pub fn spent(
        &self,
        resource: &str,
        routes: &[(&str, f64)],
        slots: f64,
        bytes: Option<f64>,
    ) -> Option<Spent> {
        let column = |pattern: &str| {
            let column = self.routes.of(&pattern.to_owned());
            column.filter(|column| *column != Column::OTHER)
        };
        let read = self.resources.iter().find(|(watched, _)| watched.name == resource);
        if let Some((watched, discovery)) = read {
            let routes: Vec<_> = routes.iter().map(|(name, cost)| (column(name), *cost)).collect();
            return Some(Spent::read(watched.capacity, discovery, &routes));
        }
        let (capacity, of) = match resource {
            SLOTS => (slots, ConsistsOf::Slots),
            BYTES => (bytes?, ConsistsOf::Bytes),
            _ => return None,
        };
        let columns: Vec<_> = routes.iter().map(|(name, _)| column(name)).collect();
        let now = self.advanced.unwrap_or(Time::ZERO);
        Some(Spent::counted(capacity, of, &self.held, now, &columns))
    }

    /// Returns the time over which requests were counted, and the mean fraction of the slots that
    /// they held. `slots` is the number of slots.
    pub fn held(&self, slots: f64) -> (TimeSpan, f64) {
        let seen =
            self.begun.zip(self.advanced).map_or(TimeSpan::ZERO, |(from, to)| to.since(from));
        let seconds = self.tally.seconds();
        let used = if seconds > 0.0 && slots > 0.0 {
            self.tally.all().held / (slots * seconds)
        } else {
            0.0
        };
        (seen, used)
    }

    /// Returns all routes that have a column of their own, and all other routes together. The
    /// routes are sorted by the mean number of slots that they hold, the largest first.
    pub fn routes(&self) -> (Vec<Part>, Part) {
        let seconds = self.tally.seconds();
        let mut others = self.tally.all();
        let mut routes = Vec::new();
        for (column, sum) in self.tally.routes() {
            let Some(pattern) = self.routes.name(column) else { continue };
            others.take(sum);
            routes.push(Part {
                by_one: self.clients.by_one(column),
                one_client: self.clients.one(column),
                transacts: self.transacts(column),
                ..Part::of(pattern.clone(), sum, seconds)
            });
        }
        routes.sort_by(|a, b| b.slots.total_cmp(&a.slots));
        (routes, Part::of(String::new(), others, seconds))
    }

    /// Returns the elephants of measured resources, then those of counted ones (slots and bytes).
    /// The elephants of a counted resource are sorted by their share, the largest first. `slots` is
    /// the number of slots. `bytes` is the capacity of the line in bytes per second, if known.
    pub fn elephants(&self, slots: f64, bytes: Option<f64>) -> Vec<Elephant> {
        let mut elephants = Vec::new();
        for (watched, discovery) in &self.resources {
            let unread = self.advanced.unwrap_or(Time::ZERO).since(discovery.read_until());
            if discovery.seen() < MIN_OBSERVATION || unread > STALE {
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
        let name = |column: &Column| self.routes.name(*column).cloned();
        let correlation = discovery.correlation(finding.column, 0);
        let pattern = name(&finding.column)?;
        let lasts = self.tally.lasts(finding.column).or_else(|| self.elsewhere.lasts(&pattern));
        Some(Elephant {
            transacts: self.transacts(finding.column),
            pattern,
            twins: finding.twins.iter().filter_map(name).collect(),
            resource: resource.name.clone(),
            consists_of: resource.consists_of,
            capacity: resource.capacity,
            used: discovery.utilisation(0),
            cost: finding.cost,
            interval: finding.interval,
            share: finding.share,
            rate: finding.rate,
            lasts: lasts.unwrap_or(0.0),
            provisional: finding.evidence == Evidence::Provisional,
            by_one: self.clients.by_one(finding.column),
            one_client: self.clients.one(finding.column),
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
            // A route whose requests use no more than the average request is a crowd of ants. Such
            // a crowd holds all slots while all requests wait. The used fraction is capped, because
            // in mode observe more slots can be held than there are.
            let is_much = found.cost >= all / every.requests
                && found.share * found.used.min(1.0) >= MIN_COUNTED_USE;
            is_much.then_some(found)
        };
        let mut found: Vec<Elephant> = self.tally.routes().filter_map(elephant).collect();
        found.sort_by(|a, b| b.share.total_cmp(&a.share));
        found
    }

    /// Returns the use of a counted resource (slots or bytes) by one route.
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
            pattern: self.routes.name(column)?.clone(),
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
            transacts: self.transacts(column),
            correlation: None,
        })
    }

    /// Returns the use of `slots` by the route with the name `pattern`, however small it is.
    /// Returns `None` if the route has no column, or if it is too new for a finite rate.
    pub fn named(&self, pattern: &str, slots: f64) -> Option<Elephant> {
        let column = self.column(pattern)?;
        let (_, sum) = self.tally.routes().find(|(of, sum)| *of == column && sum.requests > 0.0)?;
        let found = self.counted_one(column, sum, SLOTS_OF, slots, HELD)?;
        // Immediately after the start, rates are not finite.
        [found.cost, found.share, found.used, found.rate]
            .iter()
            .all(|x| x.is_finite())
            .then_some(found)
    }

    /// Returns for each pattern the more specific routes that the pattern matches as well, sorted
    /// by name. If there are more than [`MOST_EXEMPT`], only the heaviest are returned.
    pub fn within(&self, patterns: &[&str]) -> Vec<Vec<String>> {
        let mut known = Vec::new();
        for name in self.routes.by_weight() {
            // The name of a route without a column may have been withdrawn.
            if let (Ok(route), true) = (name.parse::<Pattern>(), self.is_route(name)) {
                known.push((route, name));
            }
        }
        let within = |name: &&str| {
            let Ok(pattern) = name.parse::<Pattern>() else { return Vec::new() };
            let within = known.iter().filter(|(route, _)| route.refines(&pattern));
            let mut names: Vec<String> =
                within.map(|(_, name)| (*name).clone()).take(MOST_EXEMPT).collect();
            names.sort_unstable();
            names
        };
        patterns.iter().map(within).collect()
    }

    /// Returns whether `pattern` is the name of a route at present. If it is not, some requests
    /// that match the pattern have other names now, and may get this name later.
    pub fn is_route(&self, pattern: &str) -> bool {
        self.templates.now(pattern) == pattern
    }

    /// Returns whether the watch has observed requests long enough to know nearly all routes.
    pub fn is_settled(&self) -> bool {
        let watched = self.begun.zip(self.advanced).map(|(from, to)| to.since(from));
        watched.is_some_and(|watched| watched >= SETTLED) && self.templates.entries() > 0
    }

    /// Returns how the site performed from `from` to `to`, for the requests of this elephant and
    /// for all others.
    pub fn gauge(&self, of: &Entry, from: Time, to: Time) -> Gauge {
        let name = of.found.as_ref().map(|found| &found.resource);
        let resource = self.resources.iter().position(|(watched, _)| Some(&watched.name) == name);
        self.recent.gauge(self.which(of), resource, from, to)
    }

    /// Returns the responses to this elephant's requests and to all others, by window. They cover
    /// the last 15 minutes, or the time for which requests are kept if that is shorter.
    pub fn answers(&self, of: &Entry, now: Time) -> Vec<Answers> {
        self.recent.answers(self.which(of), now)
    }

    /// Returns whether the route `pattern` is counted separately from all other routes, without a
    /// rule for it.
    pub fn tells_apart(&self, pattern: &str) -> bool {
        self.column(pattern).is_some()
    }

    fn which(&self, of: &Entry) -> Which {
        Which { column: self.column(&of.pattern), rule: of.number }
    }

    /// Returns whether a route has transactions, here or at another gateway.
    fn transacts(&self, column: Column) -> bool {
        let name = self.routes.name(column);
        self.clients.transacts(column) || name.is_some_and(|name| self.elsewhere.transacts(name))
    }

    /// Returns the column of a route; `None` if the route has none.
    fn column(&self, pattern: &str) -> Option<Column> {
        self.routes.of(&pattern.to_owned()).filter(|column| *column != Column::OTHER)
    }
}
