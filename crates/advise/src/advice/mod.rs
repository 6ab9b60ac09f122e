//! Derives the advice from a summary.

mod notes;

use bywash_terminal::text::excerpt;
use serde::Serialize;

use crate::classes::{Proposed, RoleAssignment, Template};
use crate::graph::PAGES;
use crate::hosts::Host;
use crate::limit::{Limit, limit, windows};
use crate::load::{Load, Seen, Utilisation};
use crate::minutes::Peak;
use crate::order::{Candidate, Ranked, orders};
use crate::patience::Leaving;
use crate::populations::Populations;
use crate::role::{Role, role};
use crate::summary::Summary;
use crate::tally::{Answers, Tally};
use crate::times::Quantiles;
use crate::workload::WorkloadModel;

/// The maximum number of listed transitions between pages.
const TRANSITIONS: usize = 40;

/// The complete advice for a log.
#[derive(Debug, Serialize)]
pub struct Advice {
    /// The counts of all requests.
    pub counts: Counts,
    /// The statistics of clients and their sessions.
    pub clients: Clients,
    /// The templates, those with most requests first.
    pub pages: Vec<Page>,
    /// The most frequent transitions between pages, the most frequent first.
    pub ways: Vec<Transition>,
    /// The proposed classes.
    pub classes: Vec<Proposed>,
    /// The template whose successful requests are orders; `None` if none is known.
    pub order: Option<String>,
    /// Whether the operator named the order. If not, the template in `order` is a guess.
    pub order_was_told: bool,
    /// The number of orders that succeeded.
    pub orders: u64,
    /// The answers to requests for the order, by status. Requests with a safe method do not count.
    pub(crate) order_answers: Answers,
    /// Other templates that may be the order, the most probable first.
    pub other_orders: Vec<OtherOrder>,
    /// The estimate of how long visitors wait before they leave.
    pub patience: Leaving,
    /// The peak load; `None` if the log has no requests.
    pub busy: Option<Busy>,
    /// The proposed concurrency limit.
    pub limit: Limit,
    /// The share of PHP pages among the pages that exist. A page is a PHP page if its path has a
    /// segment that ends in `.php`.
    pub php: f64,
    /// The hosts with at least a tenth of the pages, or of their total service time, the one with
    /// most pages first. The list is empty if there is only one such host, or if the log names
    /// none.
    pub hosts: Vec<Host>,
    /// The populations of clients; `None` if the log records no user agents.
    pub populations: Option<Populations>,
    /// The mean utilisation of each resource that was recorded while the log was written.
    resources: Vec<Utilisation>,
    /// The templates that cause a large part of the use of a recorded resource.
    pub elephants: Vec<Seen>,
    /// Caveats about the advice, as text for the operator.
    pub notes: Vec<String>,
    /// A model from which visitors like those of the log are drawn.
    #[serde(skip)]
    pub workload: WorkloadModel,
}

/// A template that may be the order but was not proposed as one.
#[derive(Debug, Serialize)]
pub struct OtherOrder {
    /// The pattern of the template.
    pub pattern: String,
    /// The number of the template's requests by visitors, without those of robots.
    pub requests: u64,
    /// The number of the template's requests by visitors that succeeded.
    pub succeeded: u64,
}

impl OtherOrder {
    fn shown(&self) -> String {
        format!("`{}` ({} of {} succeeded)", plain(&self.pattern), self.succeeded, self.requests)
    }
}

/// The maximum number of alternatives to the proposed order.
const CANDIDATES: usize = 5;

/// The counts of all requests of the log.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Counts {
    /// The total number of requests.
    pub requests: u64,
    /// The number of requests for files.
    pub files: u64,
    /// The number of requests by robots, which belong to no session.
    pub robots: u64,
    /// The number of requests whose client left before the answer.
    pub left: u64,
    /// The number of refused requests (status 429 or 503).
    pub refused: u64,
    /// The number of requests without a complete answer (status 502 or 504, or broken off).
    pub failed: u64,
    /// The number of requests answered with a 5xx status that no other count includes.
    pub errors: u64,
    /// The number of requests with a known duration.
    pub timed: u64,
    /// The number of requests with an implausible time.
    pub strays: u64,
    /// The time of the first request in seconds since 1970.
    pub from: u64,
    /// The end of the last request in seconds since 1970.
    pub to: u64,
    /// The time between `from` and `to`, in seconds.
    pub lasted: f64,
}

/// The statistics of clients and their sessions.
#[derive(Clone, Debug, Serialize)]
pub struct Clients {
    /// The total number of sessions.
    pub sessions: u64,
    /// The number of sessions that were ended early because too many were open.
    pub evicted: u64,
    /// The number of sessions that were still open at the end of the log.
    pub open: usize,
    /// The distribution of requests per session, including files.
    pub requests: Option<Quantiles>,
    /// The distribution of pages per session.
    pub pages: Option<Quantiles>,
    /// The distribution of think times: seconds from one page to the next request for a page.
    pub think: Option<Quantiles>,
    /// The distribution of the durations of sessions with two or more pages, in seconds.
    pub lasted: Option<Quantiles>,
}

/// The statistics of one template.
#[derive(Clone, Debug, Serialize)]
pub struct Page {
    /// The name of the template; `None` for all requests without a template of their own.
    pub template: Option<String>,
    /// The role of the proposed class that contains the template's requests.
    pub class: Role,
    /// The number of requests of the template.
    pub requests: u64,
    /// The template's share of all requests of the log.
    pub share: f64,
    /// The distribution of service times; `None` if the log has no durations.
    pub service: Option<Quantiles>,
    /// The share of the visits to this page that were the last of their session.
    pub exit: Option<f64>,
    /// The probability that a session on this page ends in an order.
    pub worth: Option<f64>,
}

/// A transition from one template to another.
#[derive(Clone, Debug, Serialize)]
pub struct Transition {
    /// The template that the session came from; `None` for requests without a template of their
    /// own.
    pub from: Option<String>,
    /// The template that the session went to; `None` for requests without a template of their own.
    pub to: Option<String>,
    /// The number of transitions.
    pub times: u64,
    /// The probability that a visit to the first template continues with this transition.
    pub probability: f64,
}

/// The two minutes of the log with the highest load, by two measures.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Busy {
    /// The minute with the most requests.
    pub most: Peak,
    /// The minute with the highest concurrency inside the application, including requests that wait
    /// in the application.
    pub fullest: Peak,
}

impl Advice {
    /// Returns a warning for the operator if the log has several hosts; otherwise returns `None`.
    pub(crate) fn several_hosts(&self) -> Option<String> {
        let host = |host: &Host| {
            format!(
                "{} ({:.0} % of the pages, {:.0} % of their time)",
                plain(&host.name),
                100.0 * host.share,
                100.0 * host.of_time
            )
        };
        let hosts: Vec<String> = self.hosts.iter().map(host).collect();
        let several = format!(
            "The log has several hosts: {}. If these are several applications, run advise on the \
             log of each: a limit belongs to one application.",
            hosts.join(", ")
        );
        (!hosts.is_empty()).then_some(several)
    }
}

impl Summary {
    /// Ends the summary, which closes open sessions, and derives the advice from it.
    pub fn advice(mut self) -> Advice {
        let open = self.finish();
        let light = self.level.light();
        let names: Vec<Option<String>> =
            (0..PAGES).map(|page| self.pages.name(page).map(str::to_owned)).collect();
        let order_page = self.order_page(&names);
        let success = |page: usize| {
            let tally = &self.tallies[page];
            if Some(page) == order_page {
                tally.orders() as f64 / tally.visits().max(1) as f64
            } else {
                0.0
            }
        };
        let success: Vec<f64> = (0..PAGES).map(success).collect();
        let worth = order_page.map(|_| self.graph.worth(&success));
        let templates = self.templates(&names, order_page);
        let assignment = RoleAssignment::new(&templates);
        let graph = self.graph.grouped(Role::ALL.len(), |page| Some(assignment.role(page).index()));
        let of_roles = worth.as_ref().map(|worth| self.of_roles(&assignment, worth));
        let all = (light, self.counts.requests);
        let classes = assignment.propose(&templates, &graph, of_roles.as_deref(), all);
        let order_tally = order_page.map(|page| &self.tallies[page]);
        let orders = order_tally.map_or(0, Tally::orders);
        let order_answers = order_tally.map(|tally| tally.answers).unwrap_or_default();
        let workload = WorkloadModel::new(&self, &assignment, &graph, order_page, light);
        let transacts = |page| matches!(assignment.role(page), Role::Order | Role::Checkout);
        let elephants = self
            .load
            .as_ref()
            .map(|load| load.elephants(|page| names.get(page).cloned().flatten(), transacts));
        let busy = self.busy();
        let limit = limit(&windows(self.minutes.each()), self.counts.timed > 0, self.machine);
        let mut advice = Advice {
            counts: self.counts(),
            clients: self.clients(open),
            pages: self.page_list(&names, &assignment, worth.as_deref()),
            ways: self.transitions(&names),
            classes,
            order: order_page.and_then(|page| names[page].clone()),
            order_was_told: self.order.is_some(),
            orders,
            order_answers,
            other_orders: self.other_orders(&names, order_page),
            patience: self.patience.leaving(),
            busy,
            limit,
            php: self.counts.php as f64 / self.counts.pages.max(1) as f64,
            hosts: self.hosts.several(),
            populations: self.populations.populations(),
            resources: self.load.as_ref().map_or_else(Vec::new, Load::utilisations),
            elephants: elephants.unwrap_or_default(),
            notes: Vec::new(),
            workload,
        };
        advice.notes = self.notes(&advice);
        advice
    }

    fn order_page(&self, names: &[Option<String>]) -> Option<usize> {
        if let Some(named) = &self.order {
            let page = names.iter().position(|name| name.as_ref() == Some(named))?;
            return (self.tallies.get(page)?.requests > 0).then_some(page);
        }
        let best = self.orders(names).into_iter().next()?;
        best.is_sure.then_some(best.page)
    }

    /// Returns the pages that may be the order, the most probable first.
    fn orders(&self, names: &[Option<String>]) -> Vec<Ranked> {
        let candidates = names.iter().enumerate().filter_map(|(page, name)| {
            let tally = self.tallies.get(page)?;
            Some(Candidate { page, name: name.as_deref()?, tally })
        });
        orders(candidates, &self.graph)
    }

    /// Returns up to [`CANDIDATES`] pages that may be the order, without the one that is proposed.
    fn other_orders(&self, names: &[Option<String>], order: Option<usize>) -> Vec<OtherOrder> {
        let others = self.orders(names).into_iter().filter(|ranked| Some(ranked.page) != order);
        let describe = |Ranked { page, .. }: Ranked| {
            let tally = &self.tallies[page];
            let pattern = names[page].clone()?;
            Some(OtherOrder { pattern, requests: tally.visits(), succeeded: tally.success })
        };
        others.filter_map(describe).take(CANDIDATES).collect()
    }

    fn templates<'a>(
        &'a self,
        names: &'a [Option<String>],
        order: Option<usize>,
    ) -> Vec<Template<'a>> {
        let one = |(page, tally): (usize, &'a Tally)| {
            let name = names[page].as_deref();
            let role = match name {
                _ if Some(page) == order => Role::Order,
                Some(name) => role(name, tally.is_file()),
                None => Role::Other,
            };
            let is_named = role == Role::Order && self.order.is_some();
            Template { page, name: name.unwrap_or_default(), role, is_named, tally }
        };
        let all = self.tallies.iter().enumerate().filter(|(_, tally)| tally.requests > 0);
        all.map(one).collect()
    }

    /// Returns the mean worth of a visit to the pages of each role. The result is indexed by role.
    fn of_roles(&self, assignment: &RoleAssignment, worth: &[f64]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); Role::ALL.len()];
        for (page, tally) in self.tallies.iter().enumerate().filter(|(_, tally)| !tally.is_file()) {
            let (sum, weight) = &mut sums[assignment.role(page).index()];
            *sum += worth[page] * tally.visits() as f64;
            *weight += tally.visits() as f64;
        }
        sums.iter().map(|(sum, weight)| if *weight > 0.0 { sum / weight } else { 0.0 }).collect()
    }

    fn counts(&self) -> Counts {
        let of = self.counts;
        let seconds = |time: bywash_units::Time| time.as_nanos() / 1_000_000_000;
        Counts {
            requests: of.requests,
            files: of.files,
            robots: of.robots,
            left: of.left,
            refused: of.refused,
            failed: of.failed,
            errors: of.errors,
            timed: of.timed,
            strays: self.clock.strays,
            from: self.first.map_or(0, seconds),
            to: seconds(self.last),
            lasted: self.lasted().as_secs_f64(),
        }
    }

    fn clients(&self, open: usize) -> Clients {
        let of = &self.sessions;
        Clients {
            sessions: of.all,
            evicted: of.evicted,
            open,
            requests: of.requests.quantiles(),
            pages: of.pages.quantiles(),
            think: of.think.quantiles(),
            lasted: of.lasted.quantiles(),
        }
    }

    fn page_list(
        &self,
        names: &[Option<String>],
        assignment: &RoleAssignment,
        worth: Option<&[f64]>,
    ) -> Vec<Page> {
        let all = self.tallies.iter().enumerate().filter(|(_, tally)| tally.requests > 0);
        let one = |(page, tally): (usize, &Tally)| {
            let leaves = self.graph.leaves(page);
            Page {
                template: names[page].clone(),
                class: assignment.role(page),
                requests: tally.requests,
                share: tally.requests as f64 / self.counts.requests as f64,
                service: tally.service.quantiles(),
                exit: (leaves > 0).then(|| self.graph.exits[page] as f64 / leaves as f64),
                worth: worth.filter(|_| !tally.is_file()).map(|worth| worth[page]),
            }
        };
        let mut pages: Vec<Page> = all.map(one).collect();
        pages.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.template.cmp(&b.template)));
        pages
    }

    fn transitions(&self, names: &[Option<String>]) -> Vec<Transition> {
        let mut transitions: Vec<(u64, usize, usize)> = Vec::new();
        for from in 0..PAGES {
            transitions.extend((0..PAGES).map(|to| (self.graph.steps(from, to), from, to)));
        }
        transitions.retain(|(times, ..)| *times > 0);
        transitions
            .sort_unstable_by_key(|(times, from, to)| (std::cmp::Reverse(*times), *from, *to));
        let transition = |(times, from, to): &(u64, usize, usize)| Transition {
            from: names[*from].clone(),
            to: names[*to].clone(),
            times: *times,
            probability: *times as f64 / self.graph.leaves(*from) as f64,
        };
        transitions.iter().take(TRANSITIONS).map(transition).collect()
    }

    fn busy(&self) -> Option<Busy> {
        let has_durations = self.counts.timed > 0;
        let (most, fullest) = self.minutes.peaks((self.first?, self.last), has_durations)?;
        Some(Busy { most, fullest })
    }
}

/// Returns at most 200 characters of a text from the log, with control characters escaped.
pub(crate) fn plain(text: &str) -> String {
    excerpt(text, 200)
}
