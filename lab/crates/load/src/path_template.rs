//! Path templates. In each request, a placeholder such as `{1..20}` in a path is replaced by a
//! random whole number from 1 to 20. In `{zipf 1..20}` lower numbers are likelier, as with the
//! pages of a site: the number k is drawn with a probability of about 1/k, scaled (Zipf's law).
//!
//! Equal placeholders in one path get the same number, so that `user{1..9}` always goes with the
//! right `password{1..9}`. Like all plans of a visitor, the numbers follow from the run's seed and
//! the visitor's number.

use bywash_scenario::Stream;
use http::Uri;

/// The path template of a class. It has been checked, so every path drawn from it is valid.
#[derive(Debug)]
pub(crate) struct PathTemplate {
    /// The texts around the placeholders: the text before the first placeholder, and the text after
    /// each placeholder.
    texts: Vec<String>,
    /// The index of each placeholder's range. Equal placeholders have the same index.
    placeholders: Vec<usize>,
    ranges: Vec<Range>,
}

/// The numbers that a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    least: u64,
    most: u64,
    is_zipf: bool,
}

impl PathTemplate {
    /// Parses a template. Returns `None` if the text is not a path.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut path = Self { texts: Vec::new(), placeholders: Vec::new(), ranges: Vec::new() };
        let (mut plain, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            plain += before;
            if let Some((range, behind)) = placeholder(after) {
                path.texts.push(std::mem::take(&mut plain));
                let known = path.ranges.iter().position(|other| *other == range);
                path.placeholders.push(known.unwrap_or(path.ranges.len()));
                if known.is_none() {
                    path.ranges.push(range);
                }
                rest = behind;
            } else {
                plain.push('{');
                rest = after;
            }
        }
        path.texts.push(plain + rest);
        let least: Vec<_> = path.ranges.iter().map(|range| range.least).collect();
        let least = path.fill(&least);
        (least.starts_with('/') && least.parse::<Uri>().is_ok()).then_some(path)
    }

    /// Returns the path of one request. The numbers for the placeholders are drawn from `chance`.
    pub(crate) fn draw(&self, chance: &mut Stream) -> Uri {
        let numbers: Vec<_> = self.ranges.iter().map(|range| range.draw(chance.unit())).collect();
        self.fill(&numbers).parse().expect("it is a valid path with other numbers")
    }

    fn fill(&self, numbers: &[u64]) -> String {
        let mut text = self.texts[0].clone();
        for (range, behind) in self.placeholders.iter().zip(&self.texts[1..]) {
            text += &numbers[*range].to_string();
            text += behind;
        }
        text
    }
}

impl Range {
    /// Returns the number at `unit`, which is between 0 and 1.
    fn draw(self, unit: f64) -> u64 {
        let Self { least, most, is_zipf } = self;
        let above = most + 1;
        let number = if is_zipf {
            // The logarithm of the number is uniform, so k has the probability ln(1 + 1/k), scaled.
            (least as f64 * libm::pow(above as f64 / least as f64, unit)) as u64
        } else {
            least + (unit * (above - least) as f64) as u64
        };
        number.clamp(least, most)
    }
}

/// Parses a placeholder at the start of `text`. Returns its range, and the text after it. Returns
/// `None` if there is no placeholder, or if it has a number above a billion, because no larger
/// numbers are needed. The numbers of `zipf` start at 1 or above.
fn placeholder(text: &str) -> Option<(Range, &str)> {
    const MOST: u64 = 1_000_000_000;
    let (range, behind) = text.split_once('}')?;
    let (least, most) = range.split_once("..")?;
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number <= MOST);
    let (least, is_zipf) = match least.strip_prefix("zipf ") {
        Some(least) => (least, true),
        None => (least, false),
    };
    let range = Range { least: number(least)?, most: number(most)?, is_zipf };
    (u64::from(is_zipf) <= range.least && range.least <= range.most).then_some((range, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(text: &str, index: u64) -> String {
        let path = PathTemplate::parse(text).unwrap();
        path.draw(&mut Stream::new(1, 4, index)).to_string()
    }

    #[test]
    fn placeholders_are_filled_with_every_number_of_their_range_and_no_other() {
        let mut seen: Vec<_> = (0..200).map(|index| draw("/a?b={3..5}&c=d", index)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, ["/a?b=3&c=d", "/a?b=4&c=d", "/a?b=5&c=d"]);
    }

    #[test]
    fn placeholders_that_are_written_alike_are_one() {
        for index in 0..50 {
            let path = draw("/?n=u{1..99}&p=p{1..99}&i={1..98}", index);
            let (user, rest) = path.strip_prefix("/?n=u").unwrap().split_once('&').unwrap();
            assert!(rest.starts_with(&format!("p=p{user}&i=")), "{path}");
        }
    }

    #[test]
    fn with_zipf_low_numbers_are_drawn_more_often_and_every_number_is_possible() {
        let mut seen = [0; 6];
        for index in 0..2000 {
            let path = draw("/{zipf 1..5}", index);
            seen[path[1..].parse::<usize>().unwrap()] += 1;
        }
        // ln 2 / ln 6 of all are 1, and ln 1.2 / ln 6 are 5.
        assert!((700..850).contains(&seen[1]) && (150..260).contains(&seen[5]), "{seen:?}");
        assert!(seen[1..].is_sorted_by(|a, b| a > b), "{seen:?}");
    }

    #[test]
    fn other_braces_stand_for_themselves_and_what_is_no_path_is_refused() {
        for text in ["/", "/a?b=c", "/?a={5..4}", "/?a={x}", "/?a={1..2", "/?a={1..9999999999}"] {
            assert_eq!(draw(text, 0), text);
        }
        for text in ["", "a{1..2}", "{1..2}/", "http://{1..2}/", "/ {1..2}", "/{zipf 0..9}"] {
            assert!(PathTemplate::parse(text).is_none(), "{text}");
        }
    }
}
