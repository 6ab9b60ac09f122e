//! Parses an offered contract. The form fields `landing`, `size`, `concepts` and `category` are
//! repeated: the n-th of each belongs to the n-th banner.

use std::collections::BTreeSet;

use bywash_site::{Form, Refusal};

use super::{SIZE, impressions, number, own_concepts};
use crate::values::{Flight, Keyword, Landing, Name, Size, Timestamp};

/// The maximum number of banners of one contract.
const MAX_BANNERS: usize = 16;

/// The maximum age of the start of an offered contract, in seconds. It allows for clocks that
/// differ and for the time that it takes to fill in a form.
const GRACE: i64 = 3_600;

/// The latest end of an offered contract, in seconds from now: ten years.
const HORIZON: i64 = 3_653 * 86_400;

/// A contract that an advertiser offers, before its concepts and the capacity are checked.
#[derive(Debug)]
pub(crate) struct NewContract {
    pub(crate) advertiser: Name,
    pub(crate) impressions: u64,
    pub(crate) flight: Flight,
    pub(crate) banners: Vec<NewBanner>,
}

/// A banner of an offered contract.
#[derive(Debug)]
pub(crate) struct NewBanner {
    pub(crate) landing: Landing,
    pub(crate) size: Size,
    pub(crate) concepts: BTreeSet<Keyword>,
    pub(crate) category: Option<Keyword>,
}

impl NewContract {
    pub(super) fn read(form: &Form, now: Timestamp) -> Result<Self, Refusal> {
        let advertiser = form.get("advertiser").and_then(Name::parse).ok_or(ADVERTISER)?;
        let impressions = impressions(form.get("impressions")).ok_or(IMPRESSIONS)?;
        let flight = flight(form, now)?;
        let banners = banners(form)?;
        if impressions < banners.len() as u64 {
            return Err(TOO_FEW);
        }
        Ok(Self { advertiser, impressions, flight, banners })
    }
}

fn flight(form: &Form, now: Timestamp) -> Result<Flight, Refusal> {
    let timestamp = |name, otherwise: Option<Timestamp>| match form.get(name) {
        None => otherwise.ok_or(DATE),
        Some(text) => {
            let seconds = number(text).and_then(|seconds| i64::try_from(seconds).ok());
            seconds.map(Timestamp).ok_or(DATE)
        }
    };
    let flight = Flight { from: timestamp("from", Some(now))?, to: timestamp("to", None)? };
    if flight.from >= flight.to {
        return Err(BACKWARDS);
    }
    if flight.to <= now {
        return Err(ENDED);
    }
    if flight.from < now.plus(-GRACE) {
        return Err(BEGUN);
    }
    if flight.to > now.plus(HORIZON) {
        return Err(FAR);
    }
    Ok(flight)
}

fn banners(form: &Form) -> Result<Vec<NewBanner>, Refusal> {
    let all = |name| form.all(name).take(MAX_BANNERS + 1).collect::<Vec<_>>();
    let [landings, sizes, concepts, categories] =
        ["landing", "size", "concepts", "category"].map(all);
    let count = landings.len();
    if !(1..=MAX_BANNERS).contains(&count) {
        return Err(BANNERS);
    }
    let is_even = sizes.len() == count && concepts.len() == count;
    if !is_even || !(categories.is_empty() || categories.len() == count) {
        return Err(UNEVEN);
    }
    let banner = |index: usize| {
        let category = categories.get(index).filter(|text| !text.is_empty());
        Ok(NewBanner {
            landing: Landing::parse(landings[index]).ok_or(LANDING)?,
            size: Size::parse(sizes[index]).ok_or(SIZE)?,
            concepts: own_concepts(concepts[index])?,
            category: category.map(|text| Keyword::parse(text).ok_or(CATEGORY)).transpose()?,
        })
    };
    (0..count).map(banner).collect()
}

const ADVERTISER: Refusal =
    Refusal::Invalid("advertiser must be 1 to 100 characters without control characters");
const IMPRESSIONS: Refusal =
    Refusal::Invalid("impressions must be a whole number from 1 to 1000000000");
const TOO_FEW: Refusal = Refusal::Invalid("impressions must be at least one for each banner");
const DATE: Refusal = Refusal::Invalid(
    "from and to must be whole seconds since 1970, as in 1893456000; without from the contract \
     begins now",
);
const BACKWARDS: Refusal = Refusal::Invalid("from must be before to");
const ENDED: Refusal = Refusal::Invalid("to must not be in the past");
const BEGUN: Refusal = Refusal::Invalid("from must be at most an hour in the past");
const FAR: Refusal = Refusal::Invalid("to must be within ten years");
const BANNERS: Refusal =
    Refusal::Invalid("a contract needs 1 to 16 banners, each with a landing, a size and concepts");
const UNEVEN: Refusal = Refusal::Invalid(
    "each banner needs a landing, a size and concepts, and a category (or an empty one) if any \
     banner has one",
);
const LANDING: Refusal = Refusal::Invalid(
    "landing must be an http or https URL of at most 2048 ASCII characters, without a user name",
);
const CATEGORY: Refusal = Refusal::Invalid("category must be 1 to 64 characters of a-z 0-9 - _");

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);
    const GOOD: &str = "advertiser=A&impressions=100&to=2000000";
    const BANNER: &str = "&landing=https://example.com/&size=468x60&concepts=car";

    fn read(text: &str) -> Result<NewContract, Refusal> {
        NewContract::read(&Form::read("", text.as_bytes()), NOW)
    }

    #[test]
    fn a_contract_has_banners_of_its_own() {
        let two = "&category=cars&landing=https://example.org/&size=120x60&concepts=a,b&category=";
        let contract = read(&format!("{GOOD}{BANNER}{two}")).unwrap();
        assert_eq!(contract.flight.from, NOW);
        let categories = contract.banners.iter().map(|banner| banner.category.is_some());
        assert_eq!(categories.collect::<Vec<_>>(), [true, false]);
        assert_eq!(contract.banners[1].concepts.len(), 2);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_reason() {
        let with = |fields: &str| read(&format!("{fields}{BANNER}")).unwrap_err();
        for (to, words) in [
            ("1000000", BACKWARDS),
            ("x", DATE),
            ("-1", DATE),
            ("", DATE),
            ("1.5", DATE),
            ("9999999999999999999999", DATE),
            ("999999999999", FAR),
        ] {
            assert_eq!(with(&format!("advertiser=A&impressions=9&to={to}")), words, "{to:?}");
        }
        assert_eq!(with("advertiser=A&impressions=9"), DATE);
        assert_eq!(with("advertiser=A&impressions=9&from=5&to=999999"), ENDED);
        assert_eq!(with("advertiser=A&impressions=9&from=5&to=2000000"), BEGUN);
        assert_eq!(with("advertiser=A&impressions=9&from=7&to=6"), BACKWARDS);
        for impressions in ["0", "-5", "1e3", "", "1000000001"] {
            let fields = format!("advertiser=A&to=2000000&impressions={impressions}");
            assert_eq!(with(&fields), IMPRESSIONS, "{impressions:?}");
        }
        assert_eq!(with("advertiser=%0a&to=2000000&impressions=1"), ADVERTISER);
        assert_eq!(read(GOOD).unwrap_err(), BANNERS);
        assert_eq!(read(&format!("{GOOD}{}", BANNER.repeat(17))).unwrap_err(), BANNERS);
        assert_eq!(read(&format!("{GOOD}{BANNER}&size=1x1")).unwrap_err(), UNEVEN);
        assert_eq!(read(&format!("{GOOD}{BANNER}{BANNER}&category=a")).unwrap_err(), UNEVEN);
        let few = "advertiser=A&impressions=1&to=2000000";
        assert_eq!(read(&format!("{few}{BANNER}{BANNER}")).unwrap_err(), TOO_FEW);
        let script = BANNER.replace("https://example.com/", "javascript:alert(1)");
        assert_eq!(read(&format!("{GOOD}{script}")).unwrap_err(), LANDING);
    }
}
