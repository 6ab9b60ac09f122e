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

/// The most probable order, if there is one.
pub(crate) fn order<'a>(
    pages: impl Iterator<Item = Candidate<'a>>,
    graph: &Graph,
) -> Option<usize> {
    let mut best: Option<(f64, usize)> = None;
    for Candidate { page, name, tally } in pages {
        let words = like_an_order(name);
        let acts = 2 * tally.unsafe_ > tally.requests;
        // The form is asked for with the same words.
        let is_one = words > 0.0 && (acts || words >= 0.9);
        if !is_one || tally.success < SOME || tally.is_file() {
            continue;
        }
        let leaves = graph.leaves(page).max(1) as f64;
        let ends = graph.exits[page] as f64 / leaves;
        let sure = words + 0.5 * ends + if acts { 1.0 } else { 0.0 };
        if best.is_none_or(|(surest, _)| sure > surest) {
            best = Some((sure, page));
        }
    }
    best.map(|(_, page)| page)
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
        order(candidates, &Graph::new(of.len()))
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
}
