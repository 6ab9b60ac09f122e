//! The catalogue of the store, with as many books as in paper 4. Each book is generated from its
//! number, so that it is the same on every machine.

mod words;

use bywash_scenario::Stream;

pub(crate) use words::{AUTHORS, FAVOURITE, TITLE_NOUNS};
use words::{SYLLABLES, TITLE_ADJECTIVES};

/// The number of books, the same as in paper 4 (section 4.2).
pub const BOOKS: u32 = 4_309;

/// The names of the categories. Each has a ninth of the books, so that browsing a category costs a
/// ninth of a search, as in paper 4 (0.4 s and 3.7 s).
pub const CATEGORIES: [&str; 9] =
    ["history", "novels", "poetry", "science", "travel", "cooking", "music", "gardens", "law"];

/// The minimum length of the text of a page, in letters. Words are appended until a page is at
/// least this long.
const PAGE: usize = 1_000;

/// The number of different words of which pages are made, in addition to the words of titles.
const WORDS: u64 = 2_000;

/// The number of the random stream for the properties of a book.
const FOR_BOOK: u64 = 1;
/// The number of the random stream for the text of a page.
const FOR_PAGE: u64 = 2;

/// The seed of all random numbers in this module.
const SEED: u64 = 4;

/// One book of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Book {
    pub(crate) id: i64,
    pub(crate) title: String,
    pub(crate) author: String,
    pub(crate) category: String,
    pub(crate) price: Cents,
}

/// An amount of money in hundredths of the currency unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cents(pub(crate) i64);

impl std::fmt::Display for Cents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let size = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:02}", size / 100, size % 100)
    }
}

impl Book {
    /// Returns the book with this number, from 1 to [`BOOKS`].
    pub(crate) fn new(number: u32) -> Self {
        let mut rng = Stream::new(SEED, FOR_BOOK, number.into());
        let adjective = pick(&TITLE_ADJECTIVES, &mut rng);
        let noun = pick(&TITLE_NOUNS, &mut rng);
        Self {
            id: number.into(),
            // The number makes each title unique.
            title: format!("The {adjective} {noun}, No. {number}"),
            author: pick(&AUTHORS, &mut rng).to_owned(),
            category: CATEGORIES[category_of(number)].to_owned(),
            price: Cents(299 + below(97, &mut rng).cast_signed() * 50),
        }
    }

    /// Returns the description that the book's page shows.
    pub(crate) fn description(&self) -> String {
        let Self { title, author, category, .. } = self;
        format!("{title}, by {author}: a book for those who care about {category}.")
    }

    /// Returns one page of the book's text in small letters. Pages are numbered from 0. Page 0
    /// begins with title and author.
    pub(crate) fn page(&self, number: u32) -> String {
        let index = u64::from(number) << 32 | self.id.unsigned_abs();
        let mut rng = Stream::new(SEED, FOR_PAGE, index);
        let mut text = String::with_capacity(PAGE + 32);
        if number == 0 {
            text = format!("{} by {} ", self.title, self.author).to_lowercase();
        }
        while text.len() < PAGE {
            match below(200, &mut rng) {
                0 => text += FAVOURITE,
                1 => text += &pick(&TITLE_NOUNS, &mut rng).to_lowercase(),
                _ => push_word(common(WORDS, &mut rng), &mut text),
            }
            text.push(' ');
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// Returns the subject of the book, a word of its title in small letters. A page that shows the
    /// book also lists other books that contain this word.
    pub(crate) fn subject(&self) -> String {
        let named = self.title.split([' ', ',']).nth(2);
        named.unwrap_or_default().to_lowercase()
    }
}

/// Returns the first and the last number of the books in a category. A category's books have
/// consecutive numbers.
pub(crate) fn shelf(category: usize) -> (i64, i64) {
    let shelves = CATEGORIES.len() as u64;
    let begins = |shelf: usize| (shelf as u64 * u64::from(BOOKS)).div_ceil(shelves).cast_signed();
    (begins(category) + 1, begins(category + 1))
}

/// Returns the first and the last number of the half of the catalogue that contains a book. Showing
/// a book reads this half, because showing costs half of a search in paper 4 (1.9 s and 3.7 s).
pub(crate) fn half(id: i64) -> (i64, i64) {
    let middle = i64::from(BOOKS / 2);
    if id <= middle { (1, middle) } else { (middle + 1, BOOKS.into()) }
}

fn category_of(number: u32) -> usize {
    (number as usize - 1) * CATEGORIES.len() / BOOKS as usize
}

/// Returns a random whole number from 0 to `count` − 1, each with the same probability.
pub(crate) fn below(count: u64, rng: &mut Stream) -> u64 {
    ((rng.unit() * count as f64) as u64).min(count - 1)
}

/// Returns a random whole number from 0 to `count` − 1. The *n*-th number has a probability of
/// about 1/*n*, like the frequency of words and the popularity of books.
pub(crate) fn common(count: u64, rng: &mut Stream) -> u64 {
    let power = (count as f64 + 1.0).powf(rng.unit());
    (power as u64).clamp(1, count) - 1
}

/// Returns one of several texts at random, each with the same probability.
pub(crate) fn pick<'a>(from: &[&'a str], rng: &mut Stream) -> &'a str {
    from[below(from.len() as u64, rng) as usize]
}

/// Returns the word with this number, which must be below [`WORDS`].
pub(crate) fn word(number: u64) -> String {
    let mut text = String::new();
    push_word(number, &mut text);
    text
}

/// Appends the word with this number to `text`. Small numbers stand for frequent words, and give
/// short words.
fn push_word(number: u64, text: &mut String) {
    let mut rest = number as usize;
    loop {
        text.push_str(SYLLABLES[rest % SYLLABLES.len()]);
        rest /= SYLLABLES.len();
        if rest == 0 {
            return;
        }
        rest -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_books_are_the_same_everywhere() {
        let book = Book::new(1);
        assert_eq!(book, Book::new(1));
        assert_eq!(
            (book.title.as_str(), book.author.as_str(), book.price),
            ("The Yellow Window, No. 1", "Leo Sandoval", Cents(4_549))
        );
        assert!(book.page(0).starts_with(&book.title.to_lowercase()));
        assert_ne!(book.page(1), book.page(2));
    }

    #[test]
    fn titles_and_words_differ() {
        let titles: HashSet<_> = (1..=BOOKS).map(|number| Book::new(number).title).collect();
        assert_eq!(titles.len(), BOOKS as usize);
        let words: HashSet<_> = (0..WORDS).map(word).collect();
        assert_eq!(words.len(), WORDS as usize);
    }

    #[test]
    fn every_book_stands_on_the_shelf_of_its_category() {
        for number in 1..=BOOKS {
            let (first, last) = shelf(category_of(number));
            assert!((first..=last).contains(&number.into()), "{number}");
        }
        assert_eq!((shelf(0).0, shelf(8).1), (1, BOOKS.into()));
    }

    #[test]
    fn shelves_and_halves_are_a_ninth_and_a_half() {
        for category in 0..CATEGORIES.len() {
            let (first, last) = shelf(category);
            assert!((478..=479).contains(&(last - first + 1)), "{first} to {last}");
        }
        assert_eq!((half(2_154), half(2_155)), ((1, 2_154), (2_155, 4_309)));
    }

    #[test]
    fn a_page_is_of_plain_small_letters() {
        let page = Book::new(7).page(3);
        assert!((PAGE - 1..PAGE + 32).contains(&page.len()), "{}", page.len());
        assert!(page.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' '), "{page}");
    }

    #[test]
    fn the_subject_is_the_noun_of_the_title() {
        let subject = Book::new(9).subject();
        assert!(TITLE_NOUNS.iter().any(|noun| noun.to_lowercase() == subject), "{subject}");
    }

    #[test]
    fn frequent_numbers_are_small_and_none_is_out_of_range() {
        let mut rng = Stream::new(1, 2, 3);
        let drawn: Vec<_> = (0..10_000).map(|_| common(100, &mut rng)).collect();
        let zeros = drawn.iter().filter(|number| **number == 0).count();
        assert!((1_300..1_700).contains(&zeros), "{zeros}: ln 2 / ln 101 is 15 %");
        assert!(drawn.iter().all(|number| *number < 100));
    }
}
