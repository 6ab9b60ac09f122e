//! Draws bar charts. The bars are horizontal, so that a long label fits on one line. A label stands
//! for a group of bars.

use super::canvas::{Canvas, Look, WIDTH, text_width};
use super::frame::{LABELS_BELOW, Plot};
use super::legend::{self, Sample};
use super::scale::Scale;
use super::{Axis, Reference, Svg};
use crate::number::short;
use crate::text::truncate;

/// The data of a bar chart.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// The title of the figure.
    pub title: String,
    /// The horizontal axis: the measured quantity with its unit. It always starts at zero.
    pub axis: Axis,
    /// The names of the series. Each series has one bar in every group.
    pub series: Vec<String>,
    /// The groups, each with its label and a value for each series in the order of `series`. A
    /// missing value is NaN or left out.
    pub groups: Vec<(String, Vec<f64>)>,
    /// A value that is marked by a line for comparison; `None` marks none.
    pub reference: Option<Reference>,
}

/// The distance from one bar of a group to the next, in SVG units.
const PITCH: f64 = 20.0;
/// The thickness of a bar, in SVG units.
const THICK: f64 = 14.0;
/// The distance between two groups, in SVG units.
const GAP: f64 = 14.0;
/// The maximum number of characters of a label; longer labels are cut.
const LONGEST: usize = 34;

/// Draws groups of bars as an SVG figure.
pub fn bars(spec: &Bars) -> Svg {
    let mut canvas = Canvas::new();
    let top = key(&mut canvas, spec) + 20.0;
    let group = PITCH * spec.series.len().max(1) as f64 + GAP;
    let label = |(label, _): &(String, _)| text_width(&truncate(label, LONGEST));
    let labels = spec.groups.iter().map(label).fold(0.0, f64::max);
    // A marker before each bar identifies its series without colour.
    let marker = if spec.series.len() > 1 { 16.0 } else { 0.0 };
    let plot = Plot::new(top, group * spec.groups.len().max(2) as f64, labels + marker);

    let x = scale(spec, plot);
    for tick in &x.ticks {
        let at = x.place(tick.value);
        canvas.line("grid", (at, plot.top), (at, plot.bottom));
    }
    for (i, (label, values)) in spec.groups.iter().enumerate() {
        let top = plot.top + group * i as f64;
        let middle = top + group / 2.0 + 4.0;
        canvas.text("end", (plot.left - 8.0 - marker, middle), &truncate(label, LONGEST));
        for (s, value) in values.iter().enumerate() {
            let name = spec.series.get(s).filter(|_| spec.series.len() > 1);
            let words = name.map_or(label.clone(), |name| format!("{label}, {name}"));
            bar(
                &mut canvas,
                &x,
                s,
                *value,
                top + GAP / 2.0 + PITCH * s as f64,
                (&words, name.is_some()),
            );
        }
    }
    plot.x_axis(&mut canvas, &x, &spec.axis.title);
    if let Some(reference) = &spec.reference {
        plot.vertical_line(&mut canvas, &x, reference, plot.top - 6.0);
    }
    if spec.groups.is_empty() {
        plot.empty(&mut canvas);
    }
    canvas.finish(&spec.title, &description(spec), plot.bottom + LABELS_BELOW)
}

/// Draws the legend, and returns its height in SVG units. A single series needs no legend, because
/// the title describes it.
fn key(canvas: &mut Canvas, spec: &Bars) -> f64 {
    if spec.series.len() < 2 {
        return 0.0;
    }
    let entry = |(i, name): (usize, &'_ String)| (Sample::Bar(Look::of(i)), name.clone());
    let entries: Vec<(Sample, String)> = spec.series.iter().enumerate().map(entry).collect();
    let entries: Vec<(Sample, &str)> =
        entries.iter().map(|(sample, name)| (*sample, name.as_str())).collect();
    legend::draw(canvas, &entries)
}

/// Returns a scale from zero, with space on the right for the text at the end of the longest bar.
fn scale(spec: &Bars, plot: Plot) -> Scale {
    let mut axis = spec.axis.clone();
    axis.log = false;
    axis.cover.push(0.0);
    axis.cover.extend(spec.reference.iter().map(|reference| reference.value));
    let values = spec.groups.iter().flat_map(|(_, values)| values.iter().copied());
    Scale::spread(&axis, &values, (plot.left, (WIDTH - 64.0).max(plot.left + 1.0)))
}

fn bar(
    canvas: &mut Canvas,
    x: &Scale,
    series: usize,
    value: f64,
    y: f64,
    (words, marked): (&str, bool),
) {
    let look = Look::of(series);
    let zero = x.place(0.0);
    let middle = y + PITCH / 2.0;
    if marked {
        canvas.path(&format!("mark c{}", look.colour), &look.marker(zero - 11.0, middle));
    }
    let Some(end) = x.at(value) else { return };
    let number = short(value, 2);
    canvas.hover(&format!("{words}: {number}"), |canvas| {
        let [left, right] = [zero.min(end), zero.max(end)];
        let class = format!("bar c{}", look.colour);
        canvas.rect(&class, [left, middle - THICK / 2.0, right - left, THICK]);
        canvas.text("halo", (right + 6.0, middle + 4.0), &number);
    });
}

fn description(spec: &Bars) -> String {
    let value = |(i, value): (usize, &f64)| match spec.series.get(i) {
        Some(name) if spec.series.len() > 1 => format!("{name} {}", short(*value, 2)),
        _ => short(*value, 2),
    };
    let group = |(label, values): &(String, Vec<f64>)| {
        let values: Vec<String> = values.iter().enumerate().map(value).collect();
        format!(" {label}: {}.", values.join(", "))
    };
    let mut words = format!("Bars of {}.", spec.axis.title);
    words.extend(spec.groups.iter().map(group));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(series: &[&str], groups: &[(&str, &[f64])]) -> String {
        bars(&Bars {
            title: "Orders".into(),
            axis: Axis { title: "orders".into(), ..Axis::default() },
            series: series.iter().map(|name| (*name).into()).collect(),
            groups: groups
                .iter()
                .map(|(label, values)| ((*label).into(), values.to_vec()))
                .collect(),
            reference: Some(Reference { value: 400.0, label: "possible".into() }),
        })
        .to_string()
    }

    #[test]
    fn every_value_has_a_bar_and_is_written_at_its_end() {
        let svg =
            drawn(&["visible", "hidden"], &[("fifo", &[1234.0, 8.0]), ("lifo", &[300.0, 0.0])]);
        assert_eq!(svg.matches("<rect class=\"bar").count(), 2 + 4, "two in the key");
        assert!(svg.contains(">1,234</text>"));
        assert!(svg.contains("fifo: visible 1,234, hidden 8."));
        assert!(svg.contains(">possible</text>"));
    }

    #[test]
    fn a_single_series_has_no_key() {
        assert!(!drawn(&["orders"], &[("fifo", &[3.0])]).contains("class=\"key\""));
    }

    #[test]
    fn odd_numbers_neither_panic_nor_show() {
        let odd: &[f64] = &[f64::NAN, f64::NEG_INFINITY, -3.0, 1e308];
        for svg in [
            drawn(&[], &[]),
            drawn(&["a"], &[("none", &[])]),
            drawn(&["a"], &[("odd", odd), ("zero", &[0.0])]),
        ] {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn a_label_is_text() {
        let svg = drawn(&["x"], &[("<script>alert(1)</script>", &[1.0])]);
        assert!(!svg.contains("<script"));
    }
}
