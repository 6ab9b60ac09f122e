//! Maps values to positions on an axis whose domain ends on round numbers, with ticks on the round
//! numbers between.
//!
//! Steps are 1, 2 or 5 times a power of ten, as in Heckbert's "Nice numbers for graph labels"
//! (Graphics Gems, 1990). A domain is never empty and never infinite, whatever the data are.

use super::Axis;
use super::canvas::text_width;
use crate::number::{fixed, short};

/// The largest absolute value that is drawn. A larger value counts as an error and is not drawn, so
/// that ranges cannot overflow.
const LARGEST: f64 = 1e15;
/// The smallest value that is drawn on a logarithmic axis.
const SMALLEST: f64 = 1e-9;

/// A tick: a round value on an axis, with its label.
#[derive(Clone, Debug)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// Maps values to positions on an axis from `start` to `end`, in SVG units.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    start: f64,
    end: f64,
    pub(super) ticks: Vec<Tick>,
}

impl Scale {
    /// Returns a scale that covers all `values`, with about `most` steps from tick to tick. Its
    /// domain reaches from the first tick to the last.
    pub(super) fn new(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        most: usize,
        (start, end): (f64, f64),
    ) -> Self {
        let usable = |value: &f64| is_drawable(*value, axis.log);
        let all = values.chain(axis.cover.iter().copied()).filter(usable);
        let (low, high) =
            all.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let ticks = match (low <= high, axis.log) {
            (false, _) => linear(0.0, 1.0, most),
            (true, false) => linear(low, high, most),
            (true, true) => logarithmic(low, high, most),
        };
        let end_of = |tick: Option<&Tick>| tick.map_or(0.0, |tick| tick.value);
        Self {
            low: end_of(ticks.first()),
            high: end_of(ticks.last()),
            log: axis.log && low <= high,
            start,
            end,
            ticks,
        }
    }

    /// Returns the scale of [`Scale::new`] that has as many ticks as fit without overlapping
    /// labels.
    pub(super) fn spread(
        axis: &Axis,
        values: &(impl Iterator<Item = f64> + Clone),
        stretch: (f64, f64),
    ) -> Self {
        let of = |most| Self::new(axis, values.clone(), most, stretch);
        let roomy = |scale: &Self| scale.labels_fit();
        [10, 8, 6, 5, 4, 3, 2].into_iter().map(of).find(roomy).unwrap_or_else(|| of(1))
    }

    /// Returns a scale whose domain is exactly from `low` to `high`. Only ticks within the domain
    /// are included.
    pub(super) fn exact(low: f64, high: f64, stretch: (f64, f64)) -> Self {
        let mut scale = Self::spread(&Axis::default(), &[low, high].into_iter(), stretch);
        if is_drawable(low, false) && is_drawable(high, false) && low < high {
            (scale.low, scale.high) = (low, high);
            scale.ticks.retain(|tick| (low..=high).contains(&tick.value));
        }
        scale
    }

    /// Returns the position of `value`; `None` if `value` cannot be drawn.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        if !is_drawable(value, self.log) {
            return None;
        }
        let along = |value: f64| if self.log { value.log10() } else { value };
        let share = (along(value) - along(self.low)) / (along(self.high) - along(self.low));
        Some(self.start + share * (self.end - self.start))
    }

    /// Returns the position of a value that is always drawable, such as a count.
    pub(super) fn place(&self, value: f64) -> f64 {
        self.at(value).unwrap_or(self.start)
    }

    /// Returns the width of the widest tick label, in SVG units.
    pub(super) fn label_width(&self) -> f64 {
        let widths = self.ticks.iter().map(|tick| text_width(&tick.label));
        widths.fold(0.0, f64::max)
    }

    fn labels_fit(&self) -> bool {
        const APART: f64 = 14.0;
        let places: Vec<f64> = self.ticks.iter().map(|tick| self.place(tick.value)).collect();
        let gaps = places.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        gaps.fold(f64::MAX, f64::min) >= self.label_width() + APART
    }
}

fn is_drawable(value: f64, log: bool) -> bool {
    value.is_finite() && value.abs() <= LARGEST && (!log || value >= SMALLEST)
}

fn linear(low: f64, high: f64, most: usize) -> Vec<Tick> {
    let (low, high) = widen(low, high);
    let step = nice((high - low) / most.max(1) as f64);
    // The slack prevents a domain that already ends on a tick from growing by a whole step.
    let first = (low / step + 1e-6).floor();
    let last = (high / step - 1e-6).ceil().max(first + 1.0);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let ticks = (0..=(last - first) as usize).map(|i| {
        let value = (first + i as f64) * step;
        Tick { value, label: fixed(value, decimals) }
    });
    ticks.collect()
}

/// Returns the range from `low` to `high`. If both are equal, returns the range of ±10 % around
/// them. If both are zero, returns the range from 0 to 1.
fn widen(low: f64, high: f64) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    if size == 0.0 {
        return (0.0, 1.0);
    }
    if high - low > size * 1e-9 {
        return (low, high);
    }
    (low - size * 0.1, high + size * 0.1)
}

/// Returns the smallest number that is at least `step` and is 1, 2 or 5 times a power of ten.
fn nice(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let factors = [1.0, 2.0, 5.0].into_iter();
    let fitting = factors.map(|factor| factor * power).find(|nice| *nice >= step * (1.0 - 1e-9));
    fitting.unwrap_or(10.0 * power)
}

/// Returns logarithmic ticks from the last round value that is not above `low` to the first that is
/// not below `high`. The ticks are those of the first of these rules that makes at most `most`
/// steps:
///
/// - 1, 2 and 5 times each power of ten;
/// - each power of ten;
/// - every second power of ten, then every third, and so on.
fn logarithmic(low: f64, high: f64, most: usize) -> Vec<Tick> {
    let fine = between(low, high, &[1.0, 2.0, 5.0], 1);
    if fine.len() <= most + 1 {
        return fine;
    }
    let coarser = (1..=30).map(|every| between(low, high, &[1.0], every));
    coarser.into_iter().find(|ticks| ticks.len() <= most.max(1) + 1).unwrap_or(fine)
}

fn between(low: f64, high: f64, factors: &[f64], every: usize) -> Vec<Tick> {
    let decades = (-12..=18).step_by(every);
    let all: Vec<f64> = decades
        .flat_map(|decade| factors.iter().map(move |factor| factor * 10_f64.powi(decade)))
        .collect();
    // A value that should equal a tick may differ by a rounding error.
    let first = all.iter().rposition(|value| *value <= low * (1.0 + 1e-9)).unwrap_or(0);
    let last = all.iter().position(|value| *value >= high * (1.0 - 1e-9)).unwrap_or(all.len() - 1);
    let last = last.max(first + 1).min(all.len() - 1);
    all[first.min(last)..=last]
        .iter()
        .map(|value| Tick { value: *value, label: short(*value, 12) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], most: usize) -> String {
        let scale = Scale::new(axis, values.iter().copied(), most, (0.0, 100.0));
        scale.ticks.iter().map(|tick| tick.label.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn linear_labels(values: &[f64], most: usize) -> String {
        labels(&Axis::default(), values, most)
    }

    fn log_labels(values: &[f64], most: usize) -> String {
        labels(&Axis { log: true, ..Axis::default() }, values, most)
    }

    #[test]
    fn ticks_are_round_and_span_the_data() {
        assert_eq!(linear_labels(&[0.0, 97.0], 5), "0 20 40 60 80 100");
        assert_eq!(linear_labels(&[0.5, 3.0], 5), "0.5 1.0 1.5 2.0 2.5 3.0");
        assert_eq!(linear_labels(&[0.0, 42_029.0], 5), "0 10,000 20,000 30,000 40,000 50,000");
        assert_eq!(linear_labels(&[-3.0, 4.0], 4), "−4 −2 0 2 4");
    }

    #[test]
    fn a_constant_nothing_and_no_number_still_make_an_axis() {
        assert_eq!(linear_labels(&[5.0], 2), "4.5 5.0 5.5");
        for values in [&[][..], &[f64::NAN], &[f64::INFINITY, 1e300], &[0.0, 0.0]] {
            assert_eq!(linear_labels(values, 2), "0.0 0.5 1.0", "{values:?}");
            assert!(!log_labels(values, 2).contains("NaN"));
        }
    }

    #[test]
    fn a_log_axis_has_round_values_of_every_decade_or_fewer() {
        assert_eq!(log_labels(&[0.5, 3.0], 6), "0.5 1 2 5");
        assert_eq!(log_labels(&[1.0, 10_000.0], 5), "1 10 100 1,000 10,000");
        assert_eq!(log_labels(&[10.0], 5), "10 20");
        assert!(log_labels(&[1e-9, 1e15], 4).split(' ').count() <= 5);
    }

    #[test]
    fn a_value_without_a_place_has_none() {
        let axis = Axis { log: true, ..Axis::default() };
        let scale = Scale::new(&axis, [1.0, 100.0].into_iter(), 5, (0.0, 100.0));
        assert_eq!(scale.at(10.0), Some(50.0));
        assert_eq!((scale.at(0.0), scale.at(f64::NAN)), (None, None));
    }

    #[test]
    fn labels_side_by_side_do_not_overlap() {
        for high in [7.0, 0.003, 1e6, 9.9e14] {
            let scale = Scale::spread(&Axis::default(), &[0.0, high].into_iter(), (0.0, 300.0));
            assert!(scale.labels_fit(), "{high}");
        }
    }

    #[test]
    fn an_exact_domain_keeps_only_its_own_ticks() {
        let scale = Scale::exact(0.0, 73.0, (0.0, 730.0));
        assert_eq!(scale.at(73.0), Some(730.0));
        assert!(scale.ticks.iter().all(|tick| tick.value <= 73.0));
    }
}
