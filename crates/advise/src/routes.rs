//! Maps each request to the number of its template. There are at most 256 numbers of templates. The
//! number 0 stands for all requests without a template of their own.

use bywash_discover::template::{Sample, Templates};
use bywash_discover::{Column, Routes};
use bywash_engine::classify::Pattern;
use bywash_units::TimeSpan;

use crate::role::is_step;

/// The number of requests after which, again and again, templates with much load can replace those
/// with little.
const WEIGHED: u64 = 50_000;
/// The constant that is added to a request's service time to give the request's weight. In a log
/// without durations, this constant makes frequent templates the heaviest.
const EACH: TimeSpan = TimeSpan::from_millis(1);

/// The mapping from requests to the numbers of their templates.
#[derive(Debug)]
pub(crate) struct Pages {
    templates: Templates,
    version: u64,
    routes: Routes<String>,
    since: u64,
}

/// The weight of a pattern of `always_track`: more time than any log contains.
const HEAVIEST: TimeSpan = TimeSpan::from_secs(1 << 33);

/// An instruction to add the counts of page `from` to page `into`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Folded {
    pub(crate) from: Column,
    pub(crate) into: Column,
}

impl Pages {
    /// Creates the mapping. Each pattern of `always_track` gets its own page, however rarely it is
    /// requested.
    pub(crate) fn new(always_track: Vec<Pattern>) -> Self {
        let mut routes = Routes::default();
        for pattern in &always_track {
            routes.column(&pattern.to_string(), HEAVIEST);
        }
        let templates = Templates::new(always_track).wanting(is_step);
        Self { templates, version: 0, routes, since: 0 }
    }

    /// Returns the page of a request. Appends to `folded` the pages whose counts must be moved
    /// before the request is counted. The caller moves them in the order of `folded`.
    pub(crate) fn of(&mut self, asked: &Sample<'_>, folded: &mut Vec<Folded>) -> Column {
        self.since += 1;
        if self.since == WEIGHED {
            self.since = 0;
            let light = self.routes.weigh(1.0);
            folded.extend(light.into_iter().map(|from| Folded { from, into: Column::OTHER }));
        }
        let name = self.templates.learn(asked);
        if self.templates.version() != self.version {
            self.rename(folded);
        }
        self.routes.column(&name, TimeSpan::from_secs_f64(asked.seconds) + EACH)
    }

    /// Renames the pages whose templates were merged. Their counts move to the page with the
    /// present name.
    fn rename(&mut self, folded: &mut Vec<Folded>) {
        self.version = self.templates.version();
        for from in (0..).map_while(Column::new) {
            let Some(name) = self.routes.name(from).cloned() else { continue };
            let now = self.templates.now(&name);
            if now == name {
                continue;
            }
            self.routes.forget(&name);
            let into = self.routes.column(&now, EACH);
            if into != from {
                folded.push(Folded { from, into });
            }
        }
    }

    /// Returns the name of a page; `None` for page 0 (all others), and for an unused number.
    pub(crate) fn name(&self, page: usize) -> Option<&str> {
        self.routes.name(Column::new(page.checked_sub(1)?)?).map(String::as_str)
    }
}

/// Returns the number of the page that a column of the discovery counts; 0 for all other requests.
pub(crate) fn page(column: Column) -> usize {
    column.number().map_or(0, |number| number + 1)
}
