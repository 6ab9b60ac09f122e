//! Assigns pages to groups, each of which has its own service time when the limit is derived.
//!
//! Each minute counts at most [`GROUPS`] groups. A page whose mean duration is known gets a free
//! group of its own, so the pages that are requested most have separate groups. If no group is
//! free, the page joins the group of the page with the most similar mean duration. All other
//! requests are in the last group: pages without a template of their own, and the first requests of
//! every page.

use crate::graph::PAGES;
use crate::tally::Tally;

/// The number of requests of a page after which its mean duration counts as known, to about a
/// seventh.
pub(crate) const ENOUGH: u64 = 50;
/// The number of groups of pages, including [`REST`].
pub(crate) const GROUPS: usize = 8;
/// The group of all requests whose page has no group of its own.
pub(crate) const REST: usize = GROUPS - 1;

/// The group of each page.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    of_page: Vec<Option<usize>>,
}

impl Default for Groups {
    fn default() -> Self {
        Self { of_page: vec![None; PAGES] }
    }
}

impl Groups {
    /// Returns the group of a request for `page`. Assigns the page to a group once its mean
    /// duration is known.
    pub(crate) fn of(&mut self, page: usize, tallies: &[Tally]) -> usize {
        if let Some(group) = self.of_page[page] {
            return group;
        }
        if page == 0 || tallies[page].service.count() < ENOUGH {
            return REST;
        }
        let free = (0..REST).find(|group| !self.of_page.contains(&Some(*group)));
        let group = free.unwrap_or_else(|| self.most_similar(page, tallies));
        self.of_page[page] = Some(group);
        group
    }

    /// Merges page `from` into page `into`. Page `into` takes the group of `from` only if it has
    /// none. Page 0, which stands for all other pages, never has one. Afterwards the number `from`
    /// may be given to another page.
    pub(crate) fn fold(&mut self, from: usize, into: usize) {
        let was = self.of_page[from].take();
        if into > 0 {
            self.of_page[into] = self.of_page[into].or(was);
        }
    }

    /// Returns the group of the page whose mean duration differs from this page's by the smallest
    /// factor.
    fn most_similar(&self, page: usize, tallies: &[Tally]) -> usize {
        let mean = |page: usize| tallies[page].mean().max(f64::MIN_POSITIVE).ln();
        let own = mean(page);
        let known = self.of_page.iter().enumerate().filter_map(|(other, group)| {
            let group = (*group)?;
            Some(((mean(other) - own).abs(), group))
        });
        known.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(REST, |(_, group)| group)
    }
}

#[cfg(test)]
mod tests {
    use bywash_units::{Time, TimeSpan};

    use super::*;
    use crate::request::{Client, End, Request};

    /// Requests each of `pages` `times` times. Each element of `pages` is a page with its duration
    /// in milliseconds. Returns the groups, the tallies, and the group that each page has in the
    /// end.
    fn groups(pages: &[(usize, u64)], times: u64) -> (Groups, Vec<Tally>, Vec<usize>) {
        let (mut groups, mut tallies) = (Groups::default(), vec![Tally::default(); PAGES]);
        let mut last = Vec::new();
        for (page, millis) in pages {
            for _ in 0..times {
                let request = Request {
                    began: Time::ZERO,
                    method: "GET",
                    target: "/",
                    host: None,
                    client: Client::Untold,
                    agent: None,
                    end: End::Answered(200),
                    waited: None,
                    service: Some(TimeSpan::from_millis(*millis)),
                };
                tallies[*page].add(&request, false, 0);
                groups.of(*page, &tallies);
            }
            last.push(groups.of(*page, &tallies));
        }
        (groups, tallies, last)
    }

    #[test]
    fn a_page_is_alone_while_there_are_groups_and_then_with_the_most_similar() {
        let millis = [10, 20, 40, 80, 160, 320, 640, 50, 500, 1];
        let pages: Vec<(usize, u64)> = (1..).zip(millis).collect();
        let (_, _, last) = groups(&pages, ENOUGH);
        assert_eq!(last, [0, 1, 2, 3, 4, 5, 6, 2, 6, 0]);
        let (_, _, few) = groups(&pages, ENOUGH - 1);
        assert_eq!(few, [REST; 10]);
        assert_eq!(groups(&[(0, 10)], 1000).2, [REST], "all others are no page");
    }

    #[test]
    fn the_group_of_a_page_that_is_folded_goes_with_it_and_is_free_if_nothing_takes_it() {
        let pages: Vec<(usize, u64)> = (1..8).map(|page| (page, 10)).collect();
        let (mut groups, tallies, _) = groups(&pages, ENOUGH);
        groups.fold(3, 9);
        assert_eq!(groups.of(9, &tallies), 2);
        groups.fold(4, 9);
        assert_eq!(groups.of(9, &tallies), 2, "one page has one group");
        let mut tallies = tallies;
        tallies[3] = tallies[1].clone();
        assert_eq!(groups.of(3, &tallies), 3, "that of page 4");
        groups.fold(5, 0);
        assert_eq!(groups.of(0, &tallies), REST);
    }
}
