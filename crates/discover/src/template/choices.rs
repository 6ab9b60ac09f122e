//! The values that were seen at one place of a URL: a bounded list, in which some values have
//! names.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// The maximum number of distinct clients that are recorded for a value. In a crowded place, a
/// value needs this many clients to have a name.
const CLIENTS: usize = 8;
/// The minimum fraction of the requests of a place, or of their time, for which a value accounts
/// for much.
const MUCH: f64 = 0.05;
/// The minimum number of requests of a place. With fewer, no value of the place accounts for much.
const SOME: f64 = 50.0;
/// The weighted number of requests below which a value is forgotten; older requests count less.
const FORGOTTEN: f64 = 0.5;

/// A value that was seen at a place of a URL.
#[derive(Clone, Debug)]
struct Choice<V> {
    is_named: bool,
    weight: Weight,
    /// The service time, in seconds, of the requests with this value and of the evicted values that
    /// it replaced. The value with the lowest score is evicted first.
    score: f64,
    clients: [u64; CLIENTS],
    /// The number of distinct clients in `clients`.
    known: usize,
    /// The tree below the value, used if the value has a name.
    below: V,
}

#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    requests: f64,
    seconds: f64,
}

impl Weight {
    fn add(&mut self, seconds: f64) {
        self.requests += 1.0;
        self.seconds += seconds;
    }

    fn fade(&mut self, part: f64) {
        self.requests *= part;
        self.seconds *= part;
    }

    fn is_much_of(&self, all: &Self) -> bool {
        all.requests >= SOME
            && (self.requests >= MUCH * all.requests || self.seconds >= MUCH * all.seconds)
    }
}

/// The values of one place. See the module documentation.
#[derive(Clone, Debug)]
pub(super) struct Choices<V> {
    seen: BTreeMap<Box<str>, Choice<V>>,
    all: Weight,
    /// Whether more values were seen than the list can hold. Then a value has a name only if it
    /// accounts for a large part ([`MUCH`]) of the requests or of their time.
    is_crowded: bool,
}

/// The properties of a request that are counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) client: u64,
    pub(super) address: u64,
    pub(super) seconds: f64,
}

/// The tree below a value that has a name.
pub(super) trait Below: Default {
    /// Multiplies all earlier counts by `part`, and forgets entries that are rarely requested. If
    /// `part` is 0, forgets everything.
    fn fade(&mut self, part: f64, entries_left: &mut usize, renamed: &mut u64);
}

impl Below for () {
    fn fade(&mut self, _: f64, _: &mut usize, _: &mut u64) {}
}

/// The rule by which the values of a place get names of their own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// The maximum number of values that are counted.
    pub(super) most: usize,
    /// Whether a new value has a name immediately, until the place is crowded.
    pub(super) at_once: bool,
    /// Whether a value that accounts for little gets a name once enough clients have requested it.
    pub(super) even_rare: bool,
}

impl<V> Default for Choices<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Choices<V> {
    pub(super) const fn new() -> Self {
        let all = Weight { requests: 0.0, seconds: 0.0 };
        Self { seen: BTreeMap::new(), all, is_crowded: false }
    }
}

impl<V: Below> Choices<V> {
    /// Counts a request for the value `key`. `entries_left` is the number of entries that may still
    /// be added. `renamed` counts the names that were withdrawn.
    pub(super) fn learn(
        &mut self,
        key: &str,
        counted: Counted,
        rule: Rule,
        entries_left: &mut usize,
        renamed: &mut u64,
    ) {
        self.all.add(counted.seconds);
        if let Some(choice) = self.seen.get_mut(key) {
            choice.weight.add(counted.seconds);
            choice.score += counted.seconds;
            choice.knows(counted.client);
            choice.is_named |= choice.may_have_name(&self.all, rule);
            return;
        }
        let mut score = counted.seconds;
        if self.seen.len() >= rule.most {
            if !self.is_crowded {
                self.is_crowded = true;
                self.unname(rule, entries_left, renamed);
            }
            let Some(least) = self.evict() else { return };
            score += least;
        } else if *entries_left > 0 {
            *entries_left -= 1;
        } else {
            return;
        }
        let is_named = rule.at_once && !self.is_crowded;
        let mut choice = Choice {
            is_named,
            weight: Weight::default(),
            score,
            clients: [0; CLIENTS],
            known: 0,
            below: V::default(),
        };
        choice.weight.add(counted.seconds);
        choice.knows(counted.client);
        self.seen.insert(key.into(), choice);
    }

    /// Evicts the value with the lowest score among those without a name, and returns its score.
    /// Returns `None` if all values have names. This is the Space-Saving algorithm: with room for n
    /// values, a value that accounts for more than 1/n is never missed.
    fn evict(&mut self) -> Option<f64> {
        let unnamed = self.seen.iter().filter(|(_, choice)| !choice.is_named);
        let (key, score) =
            unnamed.map(|(key, choice)| (key, choice.score)).min_by(|a, b| a.1.total_cmp(&b.1))?;
        let key = key.clone();
        self.seen.remove(&key);
        Some(score)
    }

    /// Withdraws the names of values that may not have a name in a crowded place.
    fn unname(&mut self, rule: Rule, entries_left: &mut usize, renamed: &mut u64) {
        let all = self.all;
        for choice in self.seen.values_mut().filter(|choice| choice.is_named) {
            if !choice.may_have_name(&all, rule) {
                choice.is_named = false;
                choice.forget_below(entries_left, renamed);
                *renamed += 1;
            }
        }
    }

    /// Returns the tree below a value if the value has a name, and otherwise `None`.
    pub(super) fn named(&self, key: &str) -> Option<&V> {
        self.seen.get(key).filter(|choice| choice.is_named).map(|choice| &choice.below)
    }

    pub(super) fn named_mut(&mut self, key: &str) -> Option<&mut V> {
        let choice = self.seen.get_mut(key).filter(|choice| choice.is_named);
        choice.map(|choice| &mut choice.below)
    }

    /// Multiplies all counts by `part`, and forgets values that are rarely requested, as
    /// [`Below::fade`] does.
    pub(super) fn fade(&mut self, part: f64, entries_left: &mut usize, renamed: &mut u64) {
        self.all.fade(part);
        self.seen.retain(|_, choice| {
            choice.weight.fade(part);
            choice.score *= part;
            choice.below.fade(part, entries_left, renamed);
            let is_kept = choice.weight.requests >= FORGOTTEN;
            if !is_kept {
                choice.forget_below(entries_left, renamed);
                *entries_left += 1;
                *renamed += u64::from(choice.is_named);
            }
            is_kept
        });
        if self.seen.is_empty() {
            self.is_crowded = false;
        }
    }

    /// Counts a request whose value can never have a name. It counts only in the total.
    pub(super) fn passed(&mut self, counted: Counted) {
        self.all.add(counted.seconds);
    }

    pub(super) fn len(&self) -> usize {
        self.seen.len()
    }
}

impl<V: Below> Choice<V> {
    /// Returns whether the value may have a name in a crowded place, or in one that gives no names
    /// immediately.
    fn may_have_name(&self, all: &Weight, rule: Rule) -> bool {
        self.known == CLIENTS && (rule.even_rare || self.weight.is_much_of(all))
    }

    fn forget_below(&mut self, entries_left: &mut usize, renamed: &mut u64) {
        self.below.fade(0.0, entries_left, renamed);
        self.below = V::default();
    }

    fn knows(&mut self, client: u64) {
        if self.known < CLIENTS && !self.clients[..self.known].contains(&client) {
            self.clients[self.known] = client;
            self.known += 1;
        }
    }
}
