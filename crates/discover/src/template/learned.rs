//! The templates of a site, and how they are learned from requests.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bywash_engine::classify::{Parameters, Pattern, is_reading};

use super::choices::{Below, Choices, Counted, Rule};
use super::shape::{Shape, may_route, shape};

/// The maximum number of entries that are remembered, over all nodes.
pub const MOST: usize = 32_768;
/// The maximum number of segments of a path that are distinguished. The template of a deeper path
/// ends with `**`.
const DEEPEST: usize = 8;
/// The maximum number of endings that a node distinguishes, for segments without a name of their
/// own.
const ENDINGS: usize = 8;

const SEGMENTS: Rule = Rule { most: 32, at_once: true, even_rare: false };
const SETS: Rule = Rule { most: 16, at_once: true, even_rare: false };
const VALUES: Rule = Rule { most: 32, at_once: false, even_rare: false };
const WANTED: Rule = Rule { most: 32, at_once: false, even_rare: true };

/// A request from which templates are learned.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'t> {
    /// The method of the request.
    pub method: &'t str,
    /// The path and the query of the request.
    pub target: &'t str,
    /// The number of the client that sent the request. Clients cannot choose this number.
    pub client: u64,
    /// The number of the client's address. Several clients may have the same address.
    pub address: u64,
    /// How long the request took, in seconds.
    pub seconds: f64,
    /// Whether the application answered the request, with a response that does not say that the
    /// page is missing.
    pub is_good: bool,
}

/// The templates of a site. See the [module](super) documentation.
#[derive(Clone, Debug)]
pub struct Templates {
    always_track: Vec<Pattern>,
    /// A function that returns whether the value of a parameter should have a name, by parameter
    /// and value.
    wanted: fn(&str, &str) -> bool,
    /// The root node of each method. Methods that only read share one.
    roots: BTreeMap<Box<str>, Node>,
    entries_left: usize,
    renamed: u64,
}

/// The maximum number of methods that are distinguished. HTTP defines nine.
const METHODS: usize = 12;

/// A node in the tree of paths, which stands for a place in the path.
#[derive(Clone, Debug, Default)]
struct Node {
    names: Choices<Option<Box<Node>>>,
    /// The nodes below segments without a name of their own, by ending.
    any: BTreeMap<Box<str>, Node>,
    sets: Choices<RoutingValues>,
}

/// The values that may select a route, for each parameter.
type RoutingValues = BTreeMap<Box<str>, Values>;

/// The values of one parameter that may select a route.
#[derive(Clone, Debug, Default)]
struct Values {
    all: Choices<()>,
    /// The wanted values. They have a list of their own, so that no other value evicts a rare
    /// wanted one.
    wanted: Choices<()>,
}

impl Templates {
    /// Creates templates that know only the given patterns, which are always tracked.
    pub fn new(mut always_track: Vec<Pattern>) -> Self {
        // The most specific pattern comes first.
        always_track.sort_unstable_by(|a, b| b.cmp(a));
        let wanted = |_: &str, _: &str| false;
        Self { always_track, wanted, roots: BTreeMap::new(), entries_left: MOST, renamed: 0 }
    }

    /// Also gives names to the values that `wanted` selects, however rare they are. `wanted` gets
    /// the parameter and the value. A value gets a name once requests from eight addresses had it.
    #[must_use]
    pub fn wanting(mut self, wanted: fn(&str, &str) -> bool) -> Self {
        self.wanted = wanted;
        self
    }

    /// Learns from a request, and returns the name of the request's route.
    pub fn learn(&mut self, sample: &Sample<'_>) -> String {
        let Sample { method, target, client, address, seconds, is_good } = *sample;
        if let Some(pattern) = self.tracked_pattern(method, target) {
            return pattern;
        }
        let root = if is_reading(method) { "" } else { method };
        if is_good && self.is_rooted(root) {
            let counted = Counted { client, address, seconds };
            let node = self.roots.entry(root.into()).or_default();
            let mut context = Context {
                wanted: self.wanted,
                entries_left: &mut self.entries_left,
                renamed: &mut self.renamed,
            };
            node.learn(target, counted, &mut context);
        }
        self.name(root, target)
    }

    /// Returns the present name of the route that had the name `name` earlier. The name of a
    /// pattern of `always_track` never changes.
    pub fn now(&self, name: &str) -> String {
        let (method, target) = name.split_once(' ').unwrap_or(("GET", name));
        if self.always_track.iter().any(|pattern| format!("{pattern}") == name) {
            return name.into();
        }
        self.name(if is_reading(method) { "" } else { method }, target)
    }

    /// Returns a version number, which changes whenever a name is withdrawn.
    pub const fn version(&self) -> u64 {
        self.renamed
    }

    /// Returns the number of entries that are remembered over all nodes.
    pub const fn entries(&self) -> usize {
        MOST - self.entries_left
    }

    /// Multiplies all earlier counts by `part`, and forgets entries that are rarely requested.
    pub fn fade(&mut self, part: f64) {
        let Self { roots, entries_left, renamed, .. } = self;
        for node in roots.values_mut() {
            node.fade(part, entries_left, renamed);
        }
    }

    fn tracked_pattern(&self, method: &str, target: &str) -> Option<String> {
        let pattern = self.always_track.iter().find(|pattern| pattern.matches(method, target))?;
        Some(format!("{pattern}"))
    }

    fn is_rooted(&self, root: &str) -> bool {
        let is_method = root.len() <= 16 && root.bytes().all(|byte| byte.is_ascii_uppercase());
        self.roots.contains_key(root) || (is_method && self.roots.len() < METHODS)
    }

    fn name(&self, root: &str, target: &str) -> String {
        let mut name = String::new();
        let Some(node) = self.roots.get(root) else {
            // No request with this method was learned.
            return if root.is_empty() { "/**".into() } else { "OTHER /**".into() };
        };
        if !root.is_empty() {
            name.push_str(root);
            name.push(' ');
        }
        node.write(target, &mut name);
        name
    }
}

/// The context of learning: the wanted values, the number of entries left, and the number of names
/// that were withdrawn.
struct Context<'a> {
    wanted: fn(&str, &str) -> bool,
    entries_left: &'a mut usize,
    renamed: &'a mut u64,
}

impl Node {
    /// Learns each segment of a path, down to the depth to which segments are distinguished. Learns
    /// the query at the node where the path ends.
    fn learn(&mut self, target: &str, counted: Counted, context: &mut Context<'_>) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut node = self;
        let mut segments = path.strip_prefix('/').unwrap_or(path).split('/');
        for segment in segments.by_ref().take(DEEPEST) {
            node = match node.step(segment, counted, context) {
                Some(next) => next,
                None => return,
            };
        }
        if segments.next().is_none() {
            node.learn_query(query, counted, context);
        }
    }

    fn step(
        &mut self,
        segment: &str,
        counted: Counted,
        context: &mut Context<'_>,
    ) -> Option<&mut Self> {
        let ending = match shape(segment) {
            Shape::Name => {
                self.names.learn(segment, counted, SEGMENTS, context.entries_left, context.renamed);
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
            *context.entries_left = context.entries_left.checked_sub(1)?;
            self.any.insert(ending.into(), Self::default());
        }
        self.any.get_mut(ending)
    }

    fn learn_query(&mut self, query: &str, counted: Counted, context: &mut Context<'_>) {
        let read = Parameters::read(query);
        let Some(given) = read.set() else { return };
        let set = set_of(&given);
        self.sets.learn(&set, counted, SETS, context.entries_left, context.renamed);
        let Some(routing) = self.sets.named_mut(&set) else { return };
        for (name, value) in given.iter().filter(|(_, value)| may_route(value)) {
            if !routing.contains_key(*name) {
                routing.insert((*name).into(), Values::default());
            }
            if let Some(values) = routing.get_mut(*name) {
                values.learn(name, value, counted, context);
            }
        }
        // Values that do not look like names count in the total, too.
        for (name, _) in given.iter().filter(|(_, value)| !may_route(value)) {
            if let Some(values) = routing.get_mut(*name) {
                values.all.passed(counted);
            }
        }
    }

    /// Appends the name of a target to `name`, from this node downwards.
    fn write(&self, target: &str, name: &mut String) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut node = self;
        let mut segments = path.strip_prefix('/').unwrap_or(path).split('/');
        for segment in segments.by_ref().take(DEEPEST) {
            let Some((next, form)) = node.next(segment) else {
                name.push_str("/**");
                return;
            };
            name.push('/');
            match form {
                Shape::Name => name.push_str(segment),
                Shape::Any(ending) => {
                    name.push('*');
                    name.push_str(ending);
                }
            }
            node = next;
        }
        if segments.next().is_some() {
            name.push_str("/**");
        } else {
            node.write_query(query, name);
        }
    }

    fn next<'t>(&self, segment: &'t str) -> Option<(&Self, Shape<'t>)> {
        static NOTHING: Node = Node::new();
        if let Some(node) = self.names.named(segment) {
            return Some((node.as_deref().unwrap_or(&NOTHING), Shape::Name));
        }
        // The segment may be a learned name such as `*.js`, or the segment of a request such as
        // `main-3f2a.js`. Both have the ending `.js`.
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
        let Some((routing, given)) = known else { return };
        for (at, (parameter, value)) in given.iter().enumerate() {
            name.push(if at == 0 { '?' } else { '&' });
            name.push_str(parameter);
            let values = routing.get(*parameter);
            if values.is_some_and(|values| values.has_name(value)) {
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

impl Values {
    fn learn(&mut self, name: &str, value: &str, counted: Counted, context: &mut Context<'_>) {
        self.all.learn(value, counted, VALUES, context.entries_left, context.renamed);
        if (context.wanted)(name, value) {
            // One visitor may be several clients, so addresses are counted here.
            let by_address = Counted { client: counted.address, ..counted };
            self.wanted.learn(value, by_address, WANTED, context.entries_left, context.renamed);
        }
    }

    /// Returns whether this value of the parameter has a name.
    fn has_name(&self, value: &str) -> bool {
        self.all.named(value).is_some() || self.wanted.named(value).is_some()
    }
}

impl Below for Node {
    fn fade(&mut self, part: f64, entries_left: &mut usize, renamed: &mut u64) {
        self.names.fade(part, entries_left, renamed);
        self.sets.fade(part, entries_left, renamed);
        self.any.retain(|_, node| {
            node.fade(part, entries_left, renamed);
            let is_kept = !node.is_empty();
            if !is_kept {
                *entries_left += 1;
            }
            is_kept
        });
    }
}

impl Below for Option<Box<Node>> {
    fn fade(&mut self, part: f64, entries_left: &mut usize, renamed: &mut u64) {
        if let Some(node) = self {
            node.fade(part, entries_left, renamed);
        }
    }
}

impl Below for RoutingValues {
    fn fade(&mut self, part: f64, entries_left: &mut usize, renamed: &mut u64) {
        for Values { all, wanted } in self.values_mut() {
            all.fade(part, entries_left, renamed);
            wanted.fade(part, entries_left, renamed);
        }
    }
}

/// Returns the names of parameters as one text, which identifies the set.
fn set_of(given: &[(&str, &str)]) -> String {
    let mut set = String::new();
    for (name, _) in given {
        set.push('&');
        set.push_str(name);
    }
    set
}
