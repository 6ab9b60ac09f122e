//! Sizes in bytes as text: `4096`, `256KiB`, `1MiB`.

/// The units and their sizes in bytes, the largest first. The first unit that divides a size is the
/// one in which the size is written.
const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Parses a whole number with a unit, such as `256KiB`, and returns the number of bytes. Returns
/// `None` if the text has another form.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*bytes)
}

/// Returns the shortest text that parses to the same size.
pub(crate) fn text(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    let (name, unit) = unit.unwrap_or(&UNITS[3]);
    format!("{}{name}", bytes / unit)
}

/// Returns the size that was probably meant by a text such as `256K`, `1 mb` or `4096`; `None` if
/// no guess is possible.
pub(crate) fn guess(given: &str) -> Option<String> {
    let digits = given.find(|c: char| !c.is_ascii_digit()).unwrap_or(given.len());
    let (number, unit) = given.split_at(digits);
    number.parse::<u64>().ok()?;
    let first = unit.trim_start().chars().next().map_or('b', |c| c.to_ascii_lowercase());
    let (name, _) = UNITS.iter().find(|(name, _)| name.to_ascii_lowercase().starts_with(first))?;
    Some(format!("{number}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_reads_back_as_it_was_written() {
        for size in ["0B", "1B", "1000B", "8KiB", "256KiB", "1MiB", "16GiB"] {
            assert_eq!(text(parse(size).unwrap()), size);
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "12", "KiB", "-1KiB", "1.5MiB", "1KB", "99999999999999999999B", "9e9GiB"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(parse("99999999999999GiB"), None);
    }

    #[test]
    fn the_usual_shorthands_are_guessed() {
        let cases = [("256K", "256KiB"), ("1 mb", "1MiB"), ("4096", "4096B"), ("2gb", "2GiB")];
        for (given, meant) in cases {
            assert_eq!(guess(given).as_deref(), Some(meant));
        }
        assert_eq!(guess("many"), None);
    }
}
