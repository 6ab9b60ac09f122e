//! The users, items, bids and comments that exist when the site opens. They are generated from
//! numbers and a seed, and are the same on every machine.

use bywash_scenario::Stream;

use crate::Sizes;

/// The number of regions, as in `RUBiS`.
pub const REGIONS: i64 = 62;

/// The names of the categories, as many as in `RUBiS`. The *n*-th category has a share of the items
/// that is about proportional to 1/*n*.
pub const CATEGORIES: [&str; 20] = [
    "Books",
    "Music",
    "Computers",
    "Clothing",
    "Toys",
    "Stamps",
    "Coins",
    "Cameras",
    "Antiques",
    "Jewellery",
    "Pottery",
    "Garden",
    "Sport",
    "Travel",
    "Tickets",
    "Tools",
    "Phones",
    "Furniture",
    "Instruments",
    "Everything else",
];

/// The number of categories, as an `i64`.
pub(crate) const KINDS: i64 = CATEGORIES.len().cast_signed() as i64;

const ADJECTIVES: [&str; 12] = [
    "Amber", "Broken", "Distant", "Early", "Golden", "Hidden", "Marble", "Old", "Patient",
    "Silver", "Tidal", "Velvet",
];

const NOUNS: [&str; 12] = [
    "Anchor", "Bridge", "Compass", "Drum", "Engine", "Furnace", "Globe", "Harp", "Inkwell", "Jug",
    "Kettle", "Lantern",
];

/// The number of the random stream for the properties of a user.
const FOR_USER: u64 = 1;
/// The number of the random stream for the properties of an item.
const FOR_ITEM: u64 = 2;
/// The number of the random stream for the bids on an item.
const FOR_BIDS: u64 = 3;
/// The number of the random stream for a comment.
const FOR_COMMENT: u64 = 4;

const DAY: i64 = 86_400;

/// Returns the nickname of the generated user with this number.
pub fn nickname(user: i64) -> String {
    format!("user{user}")
}

/// Returns the password of the generated user with this number.
pub fn password(user: i64) -> String {
    format!("password{user}")
}

/// Returns the name of the region with this number, counted from 1.
pub(crate) fn region(number: i64) -> String {
    format!("Region {number}")
}

/// Returns the number of the region in which a generated user lives.
pub(crate) fn home(sizes: &Sizes, user: i64) -> i64 {
    1 + below(REGIONS, &mut Stream::new(sizes.seed, FOR_USER, user.unsigned_abs()))
}

/// An item that exists when the site opens. Amounts of money are in hundredths of the currency
/// unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) category: i64,
    pub(crate) seller: i64,
    pub(crate) initial: i64,
    /// The price for buying a piece at once; zero if that is not possible.
    pub(crate) buy_now: i64,
    pub(crate) quantity: i64,
    /// The end of the item's auction, in seconds after the opening of the site. It is negative if
    /// the auction is already over.
    pub(crate) ends: i64,
    pub(crate) bids: Vec<Bid>,
}

/// A generated bid on an item, which is higher than the previous one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bid {
    pub(crate) bidder: i64,
    pub(crate) amount: i64,
}

/// A comment that one user wrote about another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) item: i64,
    pub(crate) rating: i64,
}

impl Item {
    /// Returns the generated item with this number, from 1 to `sizes.items`.
    pub(crate) fn new(sizes: &Sizes, id: i64) -> Self {
        let mut rng = Stream::new(sizes.seed, FOR_ITEM, id.unsigned_abs());
        let (adjective, noun) = (pick(&ADJECTIVES, &mut rng), pick(&NOUNS, &mut rng));
        let name = format!("{adjective} {noun}, No. {id}");
        let initial = 100 * (1 + below(99, &mut rng));
        let days =
            if sizes.is_over(id) { -1 - below(7, &mut rng) } else { 30 + below(335, &mut rng) };
        Self {
            id,
            description: format!(
                "{name}: {}.",
                "as good as on its first day, and kept dry ".repeat(6)
            ),
            name,
            category: 1 + common(KINDS, &mut rng),
            seller: 1 + below(sizes.users, &mut rng),
            initial,
            buy_now: if sizes.has_price(id) { initial * 3 } else { 0 },
            quantity: 1 + below(10, &mut rng),
            ends: days * DAY,
            bids: bids(sizes, id, initial),
        }
    }

    /// Returns the amount of the highest bid, which the next bid must exceed; zero if there is no
    /// bid.
    pub(crate) fn highest(&self) -> i64 {
        self.bids.last().map_or(0, |bid| bid.amount)
    }
}

/// Returns the generated bids on an item. Their number is random: its mean is `sizes.bids`, and its
/// maximum twice that.
fn bids(sizes: &Sizes, item: i64, initial: i64) -> Vec<Bid> {
    let mut rng = Stream::new(sizes.seed, FOR_BIDS, item.unsigned_abs());
    let count = below(2 * sizes.bids + 1, &mut rng);
    let mut amount = initial - 50;
    let mut bid = |_| {
        amount += 50 + below(200, &mut rng);
        Bid { bidder: 1 + below(sizes.users, &mut rng), amount }
    };
    (0..count).map(&mut bid).collect()
}

impl Comment {
    /// Returns the generated comment with this number, from 1 to `sizes.comments`.
    pub(crate) fn new(sizes: &Sizes, number: i64) -> Self {
        let mut rng = Stream::new(sizes.seed, FOR_COMMENT, number.unsigned_abs());
        Self {
            from: 1 + below(sizes.users, &mut rng),
            to: 1 + below(sizes.users, &mut rng),
            item: 1 + below(sizes.items, &mut rng),
            rating: below(11, &mut rng) - 5,
        }
    }
}

/// Returns a random whole number from 0 to `count` − 1, each with the same probability.
fn below(count: i64, rng: &mut Stream) -> i64 {
    ((rng.unit() * count as f64) as i64).min(count - 1)
}

/// Returns a random whole number from 0 to `count` − 1. The *n*-th number has a probability of
/// about 1/*n*.
fn common(count: i64, rng: &mut Stream) -> i64 {
    let power = (count as f64 + 1.0).powf(rng.unit());
    (power as i64).clamp(1, count) - 1
}

fn pick<'a>(from: &[&'a str], rng: &mut Stream) -> &'a str {
    from[below(from.len().cast_signed() as i64, rng) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { users: 100, items: 2_000, bids: 5, comments: 10, seed: 5 };

    #[test]
    fn bids_rise_and_begin_at_the_initial_price() {
        for id in 1..=200 {
            let item = Item::new(&SIZES, id);
            let amounts: Vec<_> = item.bids.iter().map(|bid| bid.amount).collect();
            assert!(amounts.is_sorted_by(|one, next| one < next), "{amounts:?}");
            assert!(amounts.first().is_none_or(|first| *first >= item.initial), "{item:?}");
        }
    }

    #[test]
    fn some_categories_have_many_times_the_items_of_others() {
        let mut counts = [0; CATEGORIES.len()];
        for id in 1..=SIZES.items {
            counts[Item::new(&SIZES, id).category as usize - 1] += 1;
        }
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
        assert!(counts[0] > 10 * counts[CATEGORIES.len() - 1], "{counts:?}");
    }

    #[test]
    fn one_seed_makes_one_auction() {
        let other = Sizes { seed: 6, ..SIZES };
        assert_eq!(Item::new(&SIZES, 7), Item::new(&SIZES, 7));
        assert_ne!(Item::new(&SIZES, 7), Item::new(&other, 7));
        assert_ne!(Comment::new(&SIZES, 7), Comment::new(&other, 7));
    }
}
