//! Templates as they are learned.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bywash_engine::classify::{Parameters, Pattern, is_reading};

use super::choices::{Below, Choices, Counted, Rule};
use super::shape::{Shape, may_route, shape};

/// Entries that are remembered, of all places together.
pub const MOST: usize = 32_768;
/// Segments that are told apart; what is deeper is `**`.
const DEEPEST: usize = 8;
/// Endings of segments that are one of many, of one place.
const ENDINGS: usize = 8;

const SEGMENTS: Rule = Rule { most: 32, at_once: true };
const SETS: Rule = Rule { most: 16, at_once: true };
const VALUES: Rule = Rule { most: 32, at_once: false };

/// A request that was asked.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'t> {
    /// Its method.
    pub method: &'t str,
    /// Path and query.
    pub target: &'t str,
    /// Who asked, by a number that nobody can choose.
    pub client: u64,
    /// How long it took.
    pub seconds: f64,
    /// It was answered, and not by saying that there is no such thing.
    pub is_good: bool,
}

/// See the [module](super).
#[derive(Clone, Debug)]
pub struct Templates {
    pins: Vec<Pattern>,
    /// Of methods that only read, and of each other.
    roots: BTreeMap<Box<str>, Place>,
    room: usize,
    renamed: u64,
}

/// Methods that are told apart: HTTP has nine.
const METHODS: usize = 12;

/// A place in the tree of paths.
#[derive(Clone, Debug, Default)]
struct Place {
    names: Choices<Option<Box<Place>>>,
    /// Segments that are one of many, by their ending.
    any: BTreeMap<Box<str>, Place>,
    sets: Choices<Routes>,
}

/// By parameter, values that may route.
type Routes = BTreeMap<Box<str>, Choices<()>>;

impl Templates {
    /// Nothing is known but these.
    pub fn new(mut pins: Vec<Pattern>) -> Self {
        // The most specific first.
        pins.sort_unstable_by(|a, b| b.cmp(a));
        Self { pins, roots: BTreeMap::new(), room: MOST, renamed: 0 }
    }

    /// The name of a request's kind, after learning from it.
    pub fn learn(&mut self, asked: &Asked<'_>) -> String {
        let Asked { method, target, client, seconds, is_good } = *asked;
        if let Some(pin) = self.pin_of(method, target) {
            return pin;
        }
        let root = if is_reading(method) { "" } else { method };
        if is_good && self.is_rooted(root) {
            let counted = Counted { client, seconds };
            let place = self.roots.entry(root.into()).or_default();
            let mut ledger = Ledger { room: &mut self.room, renamed: &mut self.renamed };
            place.learn(target, counted, &mut ledger);
        }
        self.name(root, target)
    }

    /// What a kind is called now that was called so. For who is called by a pin: the same.
    pub fn now(&self, name: &str) -> String {
        let (method, target) = name.split_once(' ').unwrap_or(("GET", name));
        if self.pins.iter().any(|pin| format!("{pin}") == name) {
            return name.into();
        }
        self.name(if is_reading(method) { "" } else { method }, target)
    }

    /// Another number when a name was taken back.
    pub const fn version(&self) -> u64 {
        self.renamed
    }

    /// Entries that are remembered.
    pub const fn entries(&self) -> usize {
        MOST - self.room
    }

    /// What was is worth this part of itself from now on, and what hardly anybody asks for is forgotten.
    pub fn fade(&mut self, part: f64) {
        let Self { roots, room, renamed, .. } = self;
        for place in roots.values_mut() {
            place.fade(part, room, renamed);
        }
    }

    fn pin_of(&self, method: &str, target: &str) -> Option<String> {
        let pin = self.pins.iter().find(|pin| pin.matches(method, target))?;
        Some(format!("{pin}"))
    }

    fn is_rooted(&self, root: &str) -> bool {
        let is_method = root.len() <= 16 && root.bytes().all(|byte| byte.is_ascii_uppercase());
        self.roots.contains_key(root) || (is_method && self.roots.len() < METHODS)
    }

    fn name(&self, root: &str, target: &str) -> String {
        let mut name = String::new();
        let Some(place) = self.roots.get(root) else {
            // A method that nothing was answered to.
            return if root.is_empty() { "/**".into() } else { "OTHER /**".into() };
        };
        if !root.is_empty() {
            name.push_str(root);
            name.push(' ');
        }
        place.write(target, &mut name);
        name
    }
}

/// What there is room for, and how many names were taken back.
struct Ledger<'a> {
    room: &'a mut usize,
    renamed: &'a mut u64,
}

impl Place {
    /// Follows a path as far as it is told apart: `each` gets each segment; the place where it ends, if it does.
    fn learn(&mut self, target: &str, counted: Counted, ledger: &mut Ledger<'_>) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut place = self;
        let mut segments = path.strip_prefix('/').unwrap_or(path).split('/');
        for segment in segments.by_ref().take(DEEPEST) {
            place = match place.step(segment, counted, ledger) {
                Some(next) => next,
                None => return,
            };
        }
        if segments.next().is_none() {
            place.learn_query(query, counted, ledger);
        }
    }

    fn step(
        &mut self,
        segment: &str,
        counted: Counted,
        ledger: &mut Ledger<'_>,
    ) -> Option<&mut Self> {
        let ending = match shape(segment) {
            Shape::Name => {
                self.names.learn(segment, counted, SEGMENTS, ledger.room, ledger.renamed);
                if self.names.named(segment).is_some() {
                    return Some(self.names.named_mut(segment)?.get_or_insert_default());
                }
                super::shape::split(segment).1
            }
            Shape::Any(ending) => ending,
        };
        let ending =
            if self.any.contains_key(ending) || self.any.len() < ENDINGS { ending } else { "" };
        if !self.any.contains_key(ending) {
            *ledger.room = ledger.room.checked_sub(1)?;
            self.any.insert(ending.into(), Self::default());
        }
        self.any.get_mut(ending)
    }

    fn learn_query(&mut self, query: &str, counted: Counted, ledger: &mut Ledger<'_>) {
        let read = Parameters::read(query);
        let Some(given) = read.set() else { return };
        let set = set_of(&given);
        self.sets.learn(&set, counted, SETS, ledger.room, ledger.renamed);
        let Some(routes) = self.sets.named_mut(&set) else { return };
        for (name, value) in given.iter().filter(|(_, value)| may_route(value)) {
            if !routes.contains_key(*name) {
                routes.insert((*name).into(), Choices::default());
            }
            if let Some(values) = routes.get_mut(*name) {
                values.learn(value, counted, VALUES, ledger.room, ledger.renamed);
            }
        }
        // What does not look like a name is of the whole as well.
        for (name, _) in given.iter().filter(|(_, value)| !may_route(value)) {
            if let Some(values) = routes.get_mut(*name) {
                values.passed(counted);
            }
        }
    }

    /// Writes the name of a target below this place.
    fn write(&self, target: &str, name: &mut String) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut place = self;
        let mut segments = path.strip_prefix('/').unwrap_or(path).split('/');
        for segment in segments.by_ref().take(DEEPEST) {
            let Some((next, written)) = place.next(segment) else {
                name.push_str("/**");
                return;
            };
            name.push('/');
            match written {
                Shape::Name => name.push_str(segment),
                Shape::Any(ending) => {
                    name.push('*');
                    name.push_str(ending);
                }
            }
            place = next;
        }
        if segments.next().is_some() {
            name.push_str("/**");
        } else {
            place.write_query(query, name);
        }
    }

    fn next<'t>(&self, segment: &'t str) -> Option<(&Self, Shape<'t>)> {
        static NOTHING: Place = Place::new();
        if let Some(place) = self.names.named(segment) {
            return Some((place.as_deref().unwrap_or(&NOTHING), Shape::Name));
        }
        // A name that was learned says `*.js`, a request `main-3f2a.js`: both end so.
        let ending = match shape(segment) {
            Shape::Any(ending) => ending,
            Shape::Name => super::shape::split(segment).1,
        };
        let of = |ending: &'t str| Some((self.any.get(ending)?, Shape::Any(ending)));
        of(ending).or_else(|| of(""))
    }

    fn write_query(&self, query: &str, name: &mut String) {
        let read = Parameters::read(query);
        let known = read.set().and_then(|given| Some((self.sets.named(&set_of(&given))?, given)));
        let Some((routes, given)) = known else { return };
        for (at, (parameter, value)) in given.iter().enumerate() {
            name.push(if at == 0 { '?' } else { '&' });
            name.push_str(parameter);
            let values = routes.get(*parameter);
            if values.is_some_and(|values| values.named(value).is_some()) {
                name.push('=');
                name.push_str(value);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.names.len() == 0 && self.sets.len() == 0 && self.any.is_empty()
    }

    const fn new() -> Self {
        Self { names: Choices::new(), any: BTreeMap::new(), sets: Choices::new() }
    }
}

impl Below for Place {
    fn fade(&mut self, part: f64, room: &mut usize, renamed: &mut u64) {
        self.names.fade(part, room, renamed);
        self.sets.fade(part, room, renamed);
        self.any.retain(|_, place| {
            place.fade(part, room, renamed);
            let is_kept = !place.is_empty();
            if !is_kept {
                *room += 1;
            }
            is_kept
        });
    }
}

impl Below for Option<Box<Place>> {
    fn fade(&mut self, part: f64, room: &mut usize, renamed: &mut u64) {
        if let Some(place) = self {
            place.fade(part, room, renamed);
        }
    }
}

impl Below for Routes {
    fn fade(&mut self, part: f64, room: &mut usize, renamed: &mut u64) {
        for values in self.values_mut() {
            values.fade(part, room, renamed);
        }
    }
}

/// The names of parameters, as one text.
fn set_of(given: &[(&str, &str)]) -> String {
    let mut set = String::new();
    for (name, _) in given {
        set.push('&');
        set.push_str(name);
    }
    set
}
