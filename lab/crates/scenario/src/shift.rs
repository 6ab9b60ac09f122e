//! Temporary changes of a class's service demand: the «size distribution shift» of paper 2.
//!
//! In a scenario file, for a class: `shift = { from = "30s", until = "155s", service = [ … ] }`.
//! The demand of a request depends on the time at which its session begins. The offered load ρ of a
//! scenario is computed from the classes without their shifts.

use bywash_units::{Time, TimeSpan};
use serde::Deserialize;

use crate::error::ScenarioError;
use crate::service::Service;
use crate::text::span;

/// A different service demand of a class between two times.
#[derive(Clone, Debug)]
pub struct Shift {
    /// The start of the shift, counted from the start of the run.
    pub from: TimeSpan,
    /// The end of the shift, counted from the start of the run.
    pub until: TimeSpan,
    /// The service demand of requests whose session begins during the shift.
    pub service: Service,
}

impl Shift {
    /// Returns whether the shift is active at `now`.
    pub fn is_on(&self, now: Time) -> bool {
        Time::ZERO + self.from <= now && now < Time::ZERO + self.until
    }
}

/// The form of a shift in a scenario file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSpec {
    from: String,
    until: String,
    service: Service,
}

impl RawSpec {
    pub(crate) fn resolve(&self, class: &str) -> Result<Shift, ScenarioError> {
        let (from, until) = (span(&self.from)?, span(&self.until)?);
        let senseless =
            |why: String| Err(ScenarioError::Invalid(format!("shift of `{class}`: {why}")));
        if from >= until {
            return senseless(format!("`until` ({until}) must be after `from` ({from})"));
        }
        if !self.service.ends() {
            return senseless("its service time must be above 0 and finite".into());
        }
        Ok(Shift { from, until, service: self.service.clone() })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bywash_units::{Time, TimeSpan};

    use crate::file::Scenario;
    use crate::file::tests::SMALL;

    const EXPONENTIAL: &str = r#"service = { mean = "100ms", shape = "exponential" }"#;

    fn read(shift: &str) -> Result<Scenario, String> {
        let service = r#"service = { mean = "5ms", shape = "constant" }"#;
        let shifted = format!("{service}\nshift = {shift}");
        let text = SMALL.replacen(EXPONENTIAL, &shifted, 1);
        Scenario::parse(&text, Path::new(".")).map_err(|error| error.to_string())
    }

    #[test]
    fn sessions_that_begin_in_it_ask_for_something_else() {
        let long =
            r#"{ from = "30s", until = "40s", service = { mean = "2s", shape = "constant" } }"#;
        let scenario = read(long).unwrap();
        let wants = |second| {
            let now = Time::ZERO + TimeSpan::from_secs(second);
            scenario.visitor(1, 1, now).attempt(&scenario).demand
        };
        let (short, long) = (TimeSpan::from_millis(5), TimeSpan::from_secs(2));
        assert_eq!([29, 30, 39, 40].map(wants), [short, long, long, short]);
        // A shift does not change the offered load ρ.
        assert_eq!(scenario.classes[0].service.mean(), short);
    }

    #[test]
    fn mistakes_are_named() {
        let constant = r#"{ mean = "2s", shape = "constant" }"#;
        for (shift, words) in [
            (
                format!(r#"{{ from = "5s", until = "5s", service = {constant} }}"#),
                "must be after `from`",
            ),
            (format!(r#"{{ from = "5s", service = {constant} }}"#), "missing field `until`"),
            (
                r#"{ from = "1s", until = "5s", service = { shape = "none" } }"#.into(),
                "above 0 and finite",
            ),
        ] {
            let error = read(&shift).expect_err(&shift);
            assert!(error.contains(words), "{words:?} is not in {error}");
        }
    }
}
