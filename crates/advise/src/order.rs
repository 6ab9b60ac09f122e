//! Which template is the order.
//!
//! It does something (POST), its words say so, it succeeds, and sessions end there. Where the order is made by others
//! (a payment service) there is at least the page that thanks for it.

use crate::graph::Graph;
use crate::role::like_an_order;
use crate::tally::Tally;

/// Fewer are chance.
const SOME: u64 = 3;

/// A page that may be the order.
pub(crate) struct Candidate<'a> {
    pub(crate) page: usize,
    pub(crate) name: &'a str,
    pub(crate) tally: &'a Tally,
}

/// Pages that may be the order, the most probable first. `is_sure` of those that are proposed as one.
pub(crate) fn orders<'a>(pages: impl Iterator<Item = Candidate<'a>>, graph: &Graph) -> Vec<Ranked> {
    let rank = |Candidate { page, name, tally }: Candidate<'_>| {
        let words = like_an_order(name);
        let acts = 2 * tally.unsafe_ > tally.requests;
        if !(words > 0.0 || acts) || tally.success < SOME || tally.is_file() {
            return None;
        }
        let leaves = graph.leaves(page).max(1) as f64;
        let ends = graph.exits[page] as f64 / leaves;
        let sure = words + 0.5 * ends + if acts { 1.0 } else { 0.0 };
        // The form is asked for with the same words.
        let is_sure = words > 0.0 && (acts || words >= 0.9);
        Some(Ranked { page, is_sure, sure })
    };
    let mut ranked: Vec<Ranked> = pages.filter_map(rank).collect();
    ranked.sort_by(|a, b| b.is_sure.cmp(&a.is_sure).then(b.sure.total_cmp(&a.sure)));
    ranked
}

/// A page that may be the order, among others.
pub(crate) struct Ranked {
    pub(crate) page: usize,
    /// The words of its pattern are those of an order.
    pub(crate) is_sure: bool,
    sure: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(requests: u64, unsafe_: u64) -> Tally {
        Tally { requests, unsafe_, success: requests, ..Tally::default() }
    }

    fn best(of: &[(&str, Tally)]) -> Option<usize> {
        let candidates = of.iter().enumerate();
        let candidates = candidates.map(|(page, (name, tally))| Candidate { page, name, tally });
        let ranked = orders(candidates, &Graph::new(of.len()));
        ranked.first().filter(|best| best.is_sure).map(|best| best.page)
    }

    #[test]
    fn it_does_something_and_says_so() {
        let pages = [
            ("/confirm", tally(9, 0)),
            ("POST /payment", tally(9, 9)),
            ("POST /confirm", tally(9, 9)),
            ("POST /comment", tally(99, 99)),
        ];
        assert_eq!(best(&pages), Some(2));
        assert_eq!(best(&pages[..1]), Some(0), "others take the money");
        assert_eq!(best(&pages[3..]), None);
        assert_eq!(best(&[("POST /confirm", tally(2, 2))]), None);
    }

    #[test]
    fn others_that_may_be_it_are_named() {
        let tallies = [tally(9, 0), tally(99, 99), tally(9, 9), tally(999, 0), tally(2, 2)];
        let names = ["/payment", "POST /comment", "POST /confirm", "/page", "POST /buy"];
        let pages = names.iter().zip(&tallies).enumerate();
        let pages = pages.map(|(page, (name, tally))| Candidate { page, name, tally });
        let ranked = orders(pages, &Graph::new(names.len()));
        let ranked: Vec<_> = ranked.iter().map(|one| (one.page, one.is_sure)).collect();
        assert_eq!(ranked, [(2, true), (1, false), (0, false)]);
    }
}
