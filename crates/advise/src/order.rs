//! Finds the template whose requests are orders.
//!
//! Usually an order is an unsafe request (POST) that succeeds, whose words name an order, and after
//! which sessions end. Two cases differ:
//!
//! - A checkout has many forms, and words such as `checkout` or `payment` do not tell which form is
//!   the last. Then the page that thanks for the order is proposed. It is also proposed if a
//!   payment service takes the order.
//! - A request that reviews or changes an order is the last choice, because shops send it with each
//!   load of the checkout.

use crate::graph::Graph;
use crate::role::{NAMES, like_an_order};
use crate::tally::Tally;

/// The minimum number of successful requests of a candidate. Fewer may be chance.
const MIN_SUCCESSES: u64 = 3;
/// The minimum score of words that name a step of a checkout. Words that review or change an order
/// have a lower score.
const STEP: f64 = 0.4;
/// The minimum score of words that can name the page after an order.
const THANKS: f64 = 0.9;

/// A page to be rated as a possible order.
pub(crate) struct Candidate<'a> {
    pub(crate) page: usize,
    pub(crate) name: &'a str,
    pub(crate) tally: &'a Tally,
}

/// Returns the pages that may be the order, the most probable first. Only a page with `is_sure` may
/// be proposed if the operator named no order.
pub(crate) fn orders<'a>(pages: impl Iterator<Item = Candidate<'a>>, graph: &Graph) -> Vec<Ranked> {
    let rank = |Candidate { page, name, tally }: Candidate<'_>| {
        let words = like_an_order(name);
        let acts = 2 * tally.unsafe_ > tally.requests;
        if !(words > 0.0 || acts) || tally.success < MIN_SUCCESSES || tally.is_file() {
            return None;
        }
        let leaves = graph.leaves(page).max(1) as f64;
        let ends = graph.exits[page] as f64 / leaves;
        let sure = words + 0.5 * ends + if acts { 1.0 } else { 0.0 };
        let kind = match (acts, words) {
            (true, NAMES..) => CandidateKind::Named,
            (false, THANKS..) => CandidateKind::Thanks,
            (true, STEP..) => CandidateKind::OnTheWay,
            (true, words) if words > 0.0 => CandidateKind::Aside,
            // A form and its submission have the same words, so words alone do not suffice.
            _ => CandidateKind::Unsure,
        };
        Some(Ranked { page, is_sure: kind != CandidateKind::Unsure, kind, sure })
    };
    let mut ranked: Vec<Ranked> = pages.filter_map(rank).collect();
    ranked.sort_by(|a, b| a.kind.cmp(&b.kind).then(b.sure.total_cmp(&a.sure)));
    ranked
}

/// A page that may be the order, with its rank among others.
pub(crate) struct Ranked {
    pub(crate) page: usize,
    /// Whether the page may be proposed as the order even if the operator named no order: its words
    /// and its method fit.
    pub(crate) is_sure: bool,
    kind: CandidateKind,
    sure: f64,
}

/// The kinds of candidates, the most probable first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CandidateKind {
    /// An unsafe request whose words name an order.
    Named,
    /// A safe request whose words thank for an order.
    Thanks,
    /// An unsafe request whose words name a step of a checkout.
    OnTheWay,
    /// An unsafe request whose words review or change an order.
    Aside,
    /// An unsafe request without such words, or a safe request with other words of an order.
    Unsure,
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
    fn a_page_that_thanks_goes_before_the_forms_of_a_checkout() {
        let pages = [
            ("POST /checkout/", tally(99, 99)),
            ("POST /checkout/preview/", tally(99, 99)),
            ("/checkout/thank-you/", tally(9, 0)),
        ];
        assert_eq!(best(&pages), Some(2));
        assert_eq!(best(&pages[..2]), Some(0));
        let named = [pages[0].clone(), pages[2].clone(), ("POST /place-order", tally(9, 9))];
        assert_eq!(best(&named), Some(2));
    }

    #[test]
    fn requests_of_each_load_of_a_checkout_are_not_the_order() {
        let woocommerce = [
            ("POST /?wc-ajax=update_order_review", tally(99, 99)),
            ("POST /?wc-ajax=checkout", tally(20, 20)),
            ("/checkout/order-received/*?key", tally(9, 0)),
        ];
        assert_eq!(best(&woocommerce), Some(2));
        assert_eq!(best(&woocommerce[..2]), Some(1));
        let prestashop = [
            ("POST /order", tally(99, 99)),
            ("/order-confirmation?id_cart&id_module&id_order&key", tally(9, 0)),
        ];
        assert_eq!(best(&prestashop), Some(1));
        assert_eq!(best(&prestashop[..1]), Some(0));
    }

    #[test]
    fn of_forms_of_a_checkout_the_one_at_which_sessions_end_is_it() {
        let tallies = [tally(99, 99), tally(99, 99)];
        let pages = ["POST /checkout/pay", "POST /checkout/last"].into_iter().zip(&tallies);
        let pages = pages.enumerate();
        let pages = pages.map(|(page, (name, tally))| Candidate { page, name, tally });
        let mut graph = Graph::new(2);
        graph.step(0, 1);
        graph.exits[1] = 1;
        let ranked: Vec<_> = orders(pages, &graph).iter().map(|one| one.page).collect();
        assert_eq!(ranked, [1, 0]);
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
