//! Part three, for whoever stays: a calm shop, a crawler that asks for its dearest page, and an operator.
//!
//! Nothing is decided here. The crawler takes six of eight workers; that shows in the console as an elephant within half a
//! minute, and a rule for it gives the shop back to its visitors.

use bywash_load::Options;
use bywash_scenario::{Profile, Scenario};

use super::side::Side;
use crate::failure::Failure;
use crate::streams::say;

pub(super) const CRAWLER: &str = include_str!("../../../../lab/scenarios/demo-crawler.toml");

/// Of what the shop can serve, what its visitors ask for.
const CALM: f64 = 0.6;

/// Goes on until it is interrupted, or for half an hour.
pub(super) fn after(
    crowd: &Scenario,
    crawler: &Scenario,
    side: &Side,
    link: &str,
) -> Result<(), Failure> {
    side.looks_for_elephants()?;
    let calm = Scenario { profile: Profile::Poisson, length: crawler.length, ..crowd.clone() };
    say(format!(
        "3. The shop behind bywash stays open. Now a crawler asks it for sorted searches, the dearest page\n   \
            there is, six at a time: visitors wait for what it leaves. In the console, under\n   \
            Elephants, bywash says who it is (after ten seconds or so) and proposes a rule;\n   \
            approve it, and look at what the others get.\n\n     {link}\n\n   \
            Ctrl-C closes the shop; in half an hour it closes by itself.\n",
    ));
    std::thread::scope(|scope| {
        let second = scope.spawn(|| play(crawler, &side.options(1.0, 2)));
        let first = play(&calm, &side.options(CALM, 3));
        let second = second.join().map_err(|_| Failure::running("the crawler has panicked"))?;
        first.and(second)
    })
}

fn play(scenario: &Scenario, options: &Options) -> Result<(), Failure> {
    bywash_load::run(scenario, options, &mut |_| ()).map(drop).map_err(Failure::running)
}

#[cfg(test)]
mod tests {
    use super::super::scenario;
    use super::*;

    #[test]
    fn the_crawler_takes_most_of_the_shop_and_its_visitors_the_rest() {
        let crawler = scenario(CRAWLER).unwrap();
        assert_eq!(crawler.sets.len(), 1);
        assert_eq!((crawler.sets[0].clients, crawler.workers), (6, 8));
    }
}
