//! Formats numbers so that they fit into a few columns of a terminal.

use bywash_control::Resource;

/// The text for an unknown value.
pub(super) const NONE: &str = "-";

/// Formats a fraction as a percentage in at most three characters. Exactly 0 is `0`, and exactly 1
/// is `100`. Fractions near these are `<1` and `>99`. An unknown fraction is [`NONE`].
pub(super) fn percent(share: Option<f64>) -> String {
    match share.map(|share| share * 100.0) {
        None => NONE.into(),
        Some(0.0) => "0".into(),
        Some(percent) if percent < 0.5 => "<1".into(),
        Some(percent) if (99.5..100.0).contains(&percent) => ">99".into(),
        Some(percent) => format!("{percent:.0}"),
    }
}

/// Formats a rate per second.
pub(super) fn rate(per_s: f64) -> String {
    match per_s {
        0.0 => "0".into(),
        rate if rate < 0.05 => "<0.1".into(),
        rate if rate < 99.95 => format!("{rate:.1}"),
        rate => large(rate),
    }
}

/// Formats a measured duration in milliseconds.
pub(super) fn duration(ms: f64) -> String {
    match ms {
        0.0 => "0ms".into(),
        ms if ms < 0.05 => "<.1ms".into(),
        ms if ms < 9.95 => format!("{ms:.1}ms"),
        ms if ms < 999.5 => format!("{ms:.0}ms"),
        ms if ms < 9950.0 => format!("{:.1}s", ms / 1e3),
        ms if ms < 120_000.0 => format!("{:.0}s", ms / 1e3),
        ms if ms < 7_200_000.0 => format!("{:.0}min", ms / 60e3),
        ms => format!("{}h", large(ms / 3.6e6)),
    }
}

/// Formats any number in about four columns.
pub(super) fn short(number: f64) -> String {
    match number.abs() {
        0.0 => "0".into(),
        size if size < 0.01 => format!("{number:.0e}"),
        size if size < 9.995 && number.fract() != 0.0 => format!("{number:.2}"),
        size if size < 99.95 && number.fract() != 0.0 => format!("{number:.1}"),
        _ => large(number),
    }
}

fn large(number: f64) -> String {
    match number.abs() {
        size if size < 9999.5 => format!("{number:.0}"),
        size if size < 999_500.0 => format!("{:.0}k", number / 1e3),
        size if size < 999.5e6 => format!("{:.0}M", number / 1e6),
        _ => format!("{number:.0e}"),
    }
}

/// Formats an amount of a resource, with the unit of the resource.
pub(super) fn used(of: Resource, units: f64) -> String {
    match of {
        Resource::Processors | Resource::Slots => duration(units * 1e3),
        Resource::Bytes if units < 1e6 => format!("{}kB", short(units / 1e3)),
        Resource::Bytes => format!("{}MB", short(units / 1e6)),
        Resource::Other => short(units),
    }
}

/// Formats a time in milliseconds since 1970 as the time of day (UTC).
pub(super) fn clock(ms: u64) -> String {
    let seconds = ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Draws the fraction `part` / `whole` as a bar. A full bar has `columns` columns. If `part` is
/// above 0, at least one column is filled.
pub(super) fn bar(part: u32, whole: u32, columns: usize) -> String {
    let full = f64::from(part) / f64::from(whole.max(1)) * columns as f64;
    let full = (full.ceil() as usize).min(columns);
    "█".repeat(full) + &"·".repeat(columns - full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_and_none_are_said_of_nothing_else() {
        let shown = [0.0, 0.001, 0.3, 0.994, 0.999, 1.0].map(|share| percent(Some(share)));
        assert_eq!(shown, ["0", "<1", "30", "99", ">99", "100"]);
        assert_eq!(percent(None), "-");
    }

    #[test]
    fn numbers_of_any_size_fit_their_columns() {
        let sizes = [
            0.0, 1e-9, 0.04, 0.5, 1.0, 9.96, 36.0, 99.96, 999.6, 5000.0, 12345.0, 1e6, 1e12, 1e300,
        ];
        for size in sizes {
            assert!(rate(size).len() <= 5, "{}", rate(size));
            assert!(short(size).len() <= 5, "{}", short(size));
            assert!(duration(size).len() <= 6, "{}", duration(size));
        }
        assert_eq!([0.9, 31.0, 120.0].map(rate), ["0.9", "31.0", "120"]);
        assert_eq!(
            [0.3, 80.4, 910.0, 2000.0, 61_000.0].map(duration),
            ["0.3ms", "80ms", "910ms", "2.0s", "61s"]
        );
        assert_eq!([36.0, 0.25, 5000.0, 20_000.0].map(short), ["36", "0.25", "5000", "20k"]);
    }

    #[test]
    fn a_bar_shows_that_there_is_something() {
        assert_eq!(bar(0, 50, 4), "····");
        assert_eq!(bar(1, 50, 4), "█···");
        assert_eq!(bar(50, 50, 4), "████");
        assert_eq!(bar(7, 0, 4), "████");
    }

    #[test]
    fn a_moment_is_a_time_of_day() {
        assert_eq!(clock(1_700_000_000_000), "22:13:20");
    }
}
