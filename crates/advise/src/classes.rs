//! Proposes classes from templates: the patterns of each class, and the worth of its requests.
//!
//! The figures of a class describe the requests that its patterns match, not those for which it was
//! intended. So a sample request of each template is classified by the gateway's own classifier.

use std::collections::{BTreeMap, BTreeSet};

use bywash_engine::ClassId;
use bywash_engine::classify::{Classifier, RequestParts, Rule};
use bywash_units::TimeSpan;
use serde::Serialize;

use crate::graph::Graph;
use crate::patterns::{folder, order_pattern, pattern, takes_all};
use crate::role::Role;
use crate::tally::Tally;
use crate::times::Quantiles;

/// The maximum number of patterns of a class. If there are more, the patterns with most requests
/// are kept.
const MOST: usize = 32;
/// The share of arrivals at a transaction that must come from the classes in `requires`.
const MIN_COVERED_ARRIVALS: f64 = 0.98;
/// A class with a smaller share of the arrivals at a transaction is left out of `requires`.
const MIN_ARRIVAL_SHARE: f64 = 0.005;
/// The number of pages in a folder from which on one pattern for the folder replaces theirs.
const SIBLINGS: usize = 6;
/// The minimum fraction of a class's visits that end in an order, for a class that is part of a
/// purchase.
const MIN_ORDER_FRACTION: f64 = 0.5;

/// A proposed class.
#[derive(Clone, Debug, Serialize)]
pub struct Proposed {
    /// The purpose of the class's requests.
    pub role: Role,
    /// The patterns of the class, the one with most visits first.
    pub patterns: Vec<String>,
    /// The number of requests that these patterns match.
    pub requests: u64,
    /// The share of the class's requests in all requests of the log.
    pub share: f64,
    /// The share of the class's requests that were refused, failed, or were answered with 5xx.
    pub errors: f64,
    /// The share of the class's requests whose client left.
    pub left: f64,
    /// The distribution of service times; `None` if the log has no durations.
    pub service: Option<Quantiles>,
    /// The mean service time at low load, in seconds.
    pub light: Option<f64>,
    /// The probability that a session with such a request ends in an order; `None` if no order is
    /// known.
    pub worth: Option<f64>,
    /// Whether the class is part of a purchase.
    pub transacts: bool,
    /// The classes from which nearly all arrivals at this class come. Empty if arrivals also come
    /// from elsewhere.
    pub requires: Vec<Role>,
    /// The number of requests that match the class's patterns although the words in their URLs
    /// suggest another purpose.
    pub mismatched: u64,
}

/// One template of the log, to be classified.
#[derive(Clone, Copy)]
pub(crate) struct Template<'a> {
    pub(crate) page: usize,
    pub(crate) name: &'a str,
    pub(crate) role: Role,
    /// Whether the template's name is the pattern that the operator named for the order.
    pub(crate) is_named: bool,
    pub(crate) tally: &'a Tally,
}

impl Template<'_> {
    fn pattern(&self) -> Option<String> {
        if self.is_named { order_pattern(self.name) } else { pattern(self.name, self.role) }
    }
}

/// The role of each page, and the patterns of each role. Each page has the role whose proposed
/// patterns match it.
///
/// A role without pages has no patterns. Narrower patterns of other roles match all of its
/// requests, and a class without requests would have no worth.
pub(crate) struct RoleAssignment {
    pub(crate) of_page: BTreeMap<usize, Role>,
    patterns: BTreeMap<Role, Vec<String>>,
}

impl RoleAssignment {
    pub(crate) fn new(templates: &[Template<'_>]) -> Self {
        let patterns = patterns(templates);
        let rules = patterns.iter().flat_map(|(role, patterns)| {
            let class = ClassId(role.index() as u8);
            patterns.iter().filter_map(move |text| Some(Rule::new(text.parse().ok()?, class)))
        });
        let other = ClassId(Role::Other.index() as u8);
        let classifier = Classifier::new(rules, other, false).ok();
        let of_page = templates.iter().map(|template| {
            let sample = template.tally.sample.as_ref();
            // The gateway normalises percent-encoded paths before it classifies them. Such a
            // request would be a poor sample here.
            let sample = sample.filter(|(_, target)| {
                target.starts_with('/')
                    && !target.split_once('?').map_or(&**target, |it| it.0).contains('%')
            });
            let taken = sample.zip(classifier.as_ref()).map(|((method, target), classifier)| {
                let method = if matches!(&**method, "HEAD" | "OPTIONS" | "TRACE" | "") {
                    "GET"
                } else {
                    method
                };
                Role::ALL[classifier.class(&RequestParts::new(method, target)).index()]
            });
            let own = || {
                let known = template.pattern().filter(|text| {
                    patterns.get(&template.role).is_some_and(|all| all.contains(text))
                });
                known.map_or(Role::Other, |_| template.role)
            };
            (template.page, taken.unwrap_or_else(own))
        });
        let of_page: BTreeMap<usize, Role> = of_page.collect();
        let mut patterns = patterns;
        patterns.retain(|role, _| of_page.values().any(|taken| taken == role));
        Self { of_page, patterns }
    }

    pub(crate) fn role(&self, page: usize) -> Role {
        self.of_page.get(&page).copied().unwrap_or(Role::Other)
    }

    /// Returns the proposed classes in the order of roles. `worth` is the worth of each role,
    /// indexed by role; `None` if no order is known. The states of `graph` are roles.
    pub(crate) fn propose(
        &self,
        templates: &[Template<'_>],
        graph: &Graph,
        worth: Option<&[f64]>,
        (light, all): (usize, u64),
    ) -> Vec<Proposed> {
        let one = |role: Role| {
            let own = || templates.iter().filter(move |template| self.role(template.page) == role);
            let mut tally = Tally::default();
            own().for_each(|template| tally.merge(template.tally.clone()));
            let patterns = self.patterns.get(&role).cloned().unwrap_or_default();
            if tally.requests == 0 && patterns.is_empty() {
                return None;
            }
            let mismatched = own().filter(|template| template.role != role && role != Role::Other);
            let share = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 / all as f64 };
            let worth = worth.map(|worth| worth[role.index()]);
            let transacts = match role {
                Role::Order | Role::Checkout => true,
                Role::Cart | Role::Login => worth.is_some_and(|worth| worth >= MIN_ORDER_FRACTION),
                Role::Home
                | Role::Browse
                | Role::Item
                | Role::Search
                | Role::Api
                | Role::Static
                | Role::Other => false,
            };
            Some(Proposed {
                role,
                patterns,
                requests: tally.requests,
                share: share(tally.requests, all),
                errors: share(tally.errors, tally.requests),
                left: share(tally.left, tally.requests),
                service: tally.service.quantiles(),
                light: tally.light(light).map(TimeSpan::as_secs_f64),
                worth: if role == Role::Static { worth.map(|_| 0.0) } else { worth },
                transacts,
                requires: if transacts { requires(role, graph) } else { Vec::new() },
                mismatched: mismatched.map(|template| template.tally.requests).sum(),
            })
        };
        let mut classes: Vec<Proposed> = Role::ALL.into_iter().filter_map(one).collect();
        let has = |role: Role, all: &[Proposed]| {
            role != Role::Other
                && all.iter().any(|one| one.role == role && !one.patterns.is_empty())
        };
        let known: Vec<bool> = Role::ALL.iter().map(|role| has(*role, &classes)).collect();
        for class in &mut classes {
            if !class.requires.iter().all(|role| known[role.index()]) {
                class.requires.clear();
            }
        }
        classes
    }
}

/// Returns the patterns of each role. If several templates have the same pattern, the template with
/// most visits decides the role of the pattern.
fn patterns(templates: &[Template<'_>]) -> BTreeMap<Role, Vec<String>> {
    let of = |template: &Template<'_>| {
        let pattern = template.pattern()?;
        let folder =
            folder(&pattern).filter(|_| matches!(template.role, Role::Browse | Role::Item));
        Some((pattern, folder, template.role, template.tally.visits()))
    };
    let known = templates.iter().filter(|template| template.role != Role::Other);
    let found: Vec<_> = known.filter_map(of).collect();
    let mut siblings: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (pattern, folder, ..) in &found {
        if let Some(folder) = folder {
            siblings.entry(folder).or_default().insert(pattern);
        }
    }
    // The pages of a folder share one template only after enough of them were seen. An earlier page
    // keeps a template of its own. It is one of many if its name has a digit and the folder has a
    // pattern.
    let is_one_of_many = |pattern: &str, folder: &str| {
        pattern.contains(|c: char| c.is_ascii_digit())
            && found.iter().any(|(other, ..)| other == folder)
    };
    let mut asked: BTreeMap<&str, BTreeMap<Role, u64>> = BTreeMap::new();
    for (pattern, folder, role, requests) in &found {
        let folder = folder
            .as_deref()
            .filter(|folder| siblings[folder].len() >= SIBLINGS || is_one_of_many(pattern, folder));
        *asked.entry(folder.unwrap_or(pattern)).or_default().entry(*role).or_default() += requests;
    }
    let mut by_role: BTreeMap<Role, Vec<(u64, String)>> = BTreeMap::new();
    for (pattern, roles) in asked {
        let all = roles.values().sum();
        let most = roles.iter().max_by_key(|(role, requests)| (**requests, **role == Role::Order));
        let Some((role, _)) = most else { continue };
        if takes_all(pattern) && !matches!(role, Role::Browse | Role::Item) {
            continue;
        }
        by_role.entry(*role).or_default().push((all, pattern.to_owned()));
    }
    let most = |(role, mut patterns): (Role, Vec<(u64, String)>)| {
        patterns.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        (role, patterns.into_iter().take(MOST).map(|(_, pattern)| pattern).collect())
    };
    by_role.into_iter().map(most).collect()
}

/// Returns the roles from which nearly all arrivals at `role` come; empty if there are other
/// sources. Only roles that show intent to buy count. A page that every visitor sees, such as an
/// item, proves nothing about a buyer.
fn requires(role: Role, graph: &Graph) -> Vec<Role> {
    let to = role.index();
    let from = |other: Role| graph.steps(other.index(), to) as f64;
    let others = || Role::ALL.into_iter().filter(|other| *other != role);
    let all = others().map(from).sum::<f64>() + graph.entries[to] as f64;
    let named: Vec<Role> = others()
        .filter(|other| *other != Role::Other && from(*other) >= MIN_ARRIVAL_SHARE * all)
        .collect();
    let covered: f64 = named.iter().map(|other| from(*other)).sum();
    let proves = |role: &Role| matches!(role, Role::Cart | Role::Login | Role::Checkout);
    let is_proof = all > 0.0 && covered >= MIN_COVERED_ARRIVALS * all && named.iter().all(proves);
    if is_proof { named } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(requests: u64, sample: (&str, &str)) -> Tally {
        let sample = Some((sample.0.into(), sample.1.into()));
        Tally { requests, sample, ..Tally::default() }
    }

    #[test]
    fn a_class_has_what_its_patterns_take() {
        let tallies = [
            ("/shop?q", Role::Search, tally(10, ("GET", "/shop?q=a&page=2"))),
            ("/shop", Role::Browse, tally(90, ("GET", "/shop"))),
            ("/item/*", Role::Item, tally(50, ("HEAD", "/item/7"))),
            ("/*.png", Role::Static, tally(70, ("GET", "/a.png"))),
            ("POST /buy", Role::Order, tally(5, ("POST", "/buy"))),
            ("/cart", Role::Cart, tally(7, ("GET", "/cart"))),
        ];
        let all = tallies.iter().enumerate();
        let templates: Vec<Template<'_>> = all
            .map(|(page, (name, role, tally))| Template {
                page,
                name,
                role: *role,
                is_named: false,
                tally,
            })
            .collect();
        let assignment = RoleAssignment::new(&templates);
        let roles: Vec<Role> = (0..6).map(|page| assignment.role(page)).collect();
        assert_eq!(
            roles,
            [Role::Search, Role::Browse, Role::Item, Role::Static, Role::Order, Role::Cart]
        );
        let mut graph = Graph::new(Role::ALL.len());
        graph.entries[Role::Browse.index()] = 9;
        for _ in 0..99 {
            graph.step(Role::Cart.index(), Role::Order.index());
        }
        let worth = [0.1; 11];
        let classes = assignment.propose(&templates, &graph, Some(&worth), (0, 232));
        let of = |role| classes.iter().find(|class| class.role == role).unwrap();
        assert_eq!((of(Role::Browse).requests, of(Role::Browse).mismatched), (90, 0));
        assert_eq!(
            (of(Role::Order).transacts, &of(Role::Order).requires[..]),
            (true, &[Role::Cart][..])
        );
        let unknown = assignment.propose(&templates, &graph, None, (0, 232));
        let transacts = |role| unknown.iter().any(|class| class.role == role && class.transacts);
        assert!(transacts(Role::Order), "also if its worth is unknown");
        assert_eq!(of(Role::Search).patterns, ["GET /shop?q&..."]);
        // A transition from an item does not count, because every visitor may look at an item.
        let (item, order) = (Role::Item.index(), Role::Order.index());
        (0..9).for_each(|_| graph.step(item, order));
        let classes = assignment.propose(&templates, &graph, Some(&worth), (0, 232));
        assert!(classes.iter().all(|class| class.requires.is_empty()), "an item proves nothing");
        assert!(classes.iter().all(|class| class.requires.is_empty()), "some begin with it");
    }

    #[test]
    fn many_pages_of_a_folder_are_one_pattern() {
        let names = |pages: u64| {
            let names = (0..pages).map(|page| {
                format!("/topic/about-{}", ["a", "b", "c", "d", "e", "f", "g"][page as usize])
            });
            names
                .chain(["/topic/*".into(), "/one".into(), "/topic/a/rss".into()])
                .collect::<Vec<_>>()
        };
        let of = |pages: u64| {
            let names = names(pages);
            let tallies: Vec<Tally> = names.iter().map(|name| tally(10, ("GET", name))).collect();
            let templates: Vec<Template<'_>> = names
                .iter()
                .zip(&tallies)
                .enumerate()
                .map(|(page, (name, tally))| Template {
                    page,
                    name,
                    role: Role::Browse,
                    is_named: false,
                    tally,
                })
                .collect();
            patterns(&templates).remove(&Role::Browse).unwrap()
        };
        assert_eq!(of(7), ["GET /topic/*", "GET /one", "GET /topic/a/rss"]);
        assert_eq!(of(5).len(), 8, "five pages are named one by one");
        let tallies = [tally(10, ("GET", "/p/7_7/")), tally(90, ("GET", "/p/8_8/"))];
        let names = [("/p/7_7/", Role::Browse), ("/p/*/", Role::Item)];
        let templates: Vec<Template<'_>> = (0..2)
            .map(|page| Template {
                page,
                name: names[page].0,
                role: names[page].1,
                is_named: false,
                tally: &tallies[page],
            })
            .collect();
        let all: Vec<_> = patterns(&templates).into_iter().collect();
        assert_eq!(all, [(Role::Item, vec!["GET /p/*/".to_owned()])]);
    }

    #[test]
    fn a_class_that_no_request_reaches_is_not_proposed() {
        let tallies = [
            // `/shop/**` is narrower than `/*/search?q` in the first segment, so it matches
            // requests for the search.
            ("/*/search?q", Role::Search, tally(10, ("GET", "/shop/search"))),
            ("/shop/**", Role::Item, tally(90, ("GET", "/shop/7"))),
        ];
        let all = tallies.iter().enumerate();
        let templates: Vec<Template<'_>> = all
            .map(|(page, (name, role, tally))| Template {
                page,
                name,
                role: *role,
                is_named: false,
                tally,
            })
            .collect();
        let assignment = RoleAssignment::new(&templates);
        let graph = Graph::new(Role::ALL.len());
        let classes = assignment.propose(&templates, &graph, Some(&[0.1; 11]), (0, 100));
        let roles: Vec<(Role, u64, u64)> =
            classes.iter().map(|class| (class.role, class.requests, class.mismatched)).collect();
        assert_eq!(roles, [(Role::Item, 100, 10)]);
        let elsewhere = tally(10, ("GET", "/blog/search"));
        let templates = [Template { tally: &elsewhere, ..templates[0] }, templates[1]];
        let assignment = RoleAssignment::new(&templates);
        let classes = assignment.propose(&templates, &graph, Some(&[0.1; 11]), (0, 100));
        assert_eq!(classes.len(), 2, "that one is reached");
    }
}
