//! Draws a run second by second: the outcomes of requests as stacked layers, and the orders below
//! on an axis of their own.
//!
//! About one request in a hundred is an order, so orders would not be visible on the axis of
//! requests. Both strips share the time axis and the phases behind them.

use bywash_scenario::Second;

use super::canvas::{Canvas, ID, px};
use super::frame::{self, LABELS_BELOW, Plot, TITLE_ABOVE};
use super::legend::{self, Sample};
use super::scale::Scale;
use super::{Axis, Svg, phases};
use crate::number::{count, short};

/// A named part of the run, such as the crowd or the outage.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The name shown above the strips.
    pub label: String,
    /// The start, in seconds since the start of the run.
    pub from_s: f64,
    /// The end, in seconds since the start of the run.
    pub to_s: f64,
}

/// The data of a timeline figure.
#[derive(Clone, Copy, Debug)]
pub struct Timeline<'a> {
    /// The title of the figure.
    pub title: &'a str,
    /// The counts of each second of a run, or their sums over several runs.
    pub seconds: &'a [Second],
    /// The number of runs in `seconds`. The figure shows means over the runs.
    pub runs: usize,
    /// Phases, shaded alternately behind the strips.
    pub phases: &'a [Phase],
    /// The values that the two vertical axes must include. To give several figures the same axes,
    /// set this field of each figure to the maximum of their own ceilings.
    pub ceiling: Ceiling,
}

/// The highest values that a timeline draws: requests per second and orders per minute.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ceiling {
    requests_per_s: f64,
    orders_per_min: f64,
}

impl Ceiling {
    /// Returns the highest drawn values of `seconds`, which are the sum of `runs` runs.
    pub fn of(seconds: &[Second], runs: usize) -> Self {
        let ends = bins(seconds, runs, MOST_STEPS);
        let orders = bins(seconds, runs, MOST_ORDER_STEPS);
        Self {
            requests_per_s: ends.iter().map(|bin| bin.layers.iter().sum()).fold(0.0, f64::max),
            orders_per_min: orders.iter().map(|bin| bin.orders).fold(0.0, f64::max),
        }
    }

    /// Returns, for each of the two values, the higher one of `self` and `other`.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            requests_per_s: self.requests_per_s.max(other.requests_per_s),
            orders_per_min: self.orders_per_min.max(other.orders_per_min),
        }
    }
}

/// The layers from the bottom up: name, CSS class of the fill, and id of the hatching, if any.
const LAYERS: [(&str, &str, Option<&str>); 5] = [
    ("completed", "completed", None),
    ("timed out", "timed-out", Some("rising")),
    ("dropped", "dropped", Some("falling")),
    ("terminated", "terminated", None),
    ("failed", "failed", None),
];
/// The heights of the upper and the lower strip, in SVG units.
const HEIGHTS: (f64, f64) = (170.0, 56.0);
/// The vertical distance between the strips, in SVG units. The title of the lower strip stands in
/// it.
const BETWEEN: f64 = 42.0;
/// The maximum number of steps in the strip of requests. More could not be distinguished, and would
/// make the SVG large.
const MOST_STEPS: usize = 300;
/// The maximum number of steps in the strip of orders. Orders are rare, so a shorter step would
/// contain one order or none.
const MOST_ORDER_STEPS: usize = 60;
/// The number of seconds above which the time axis of a run is in minutes.
const LONGEST_IN_SECONDS: usize = 300;

/// Draws a timeline as an SVG figure.
pub fn timeline(spec: &Timeline<'_>) -> Svg {
    let ends = bins(spec.seconds, spec.runs, MOST_STEPS);
    let orders = bins(spec.seconds, spec.runs, MOST_ORDER_STEPS);
    let ceiling = Ceiling::of(spec.seconds, spec.runs).max(spec.ceiling);
    let mut canvas = Canvas::new();
    canvas.raw(&hatches());
    let entries = LAYERS.map(|(name, class, hatch)| (Sample::Layer(class, hatch), name));
    let title_top = legend::draw(&mut canvas, &entries);
    let top = title_top + TITLE_ABOVE + phases::room(spec.phases);
    let below = top + HEIGHTS.0 + BETWEEN;

    let ends_y = up_to(ceiling.requests_per_s, 4, (top + HEIGHTS.0, top));
    let orders_y = up_to(ceiling.orders_per_min, 2, (below + HEIGHTS.1, below));
    let width = ends_y.label_width().max(orders_y.label_width());
    let upper = Plot::new(top, HEIGHTS.0, width);
    let lower = Plot::new(below, HEIGHTS.1, width);
    let time = Time::new(spec.seconds.len(), upper);

    let both = Plot { bottom: lower.bottom, ..upper };
    phases::draw(&mut canvas, spec.phases, both, |second| time.scale.at(second / time.unit_s));
    upper.y_axis(&mut canvas, &ends_y);
    axis_title(&mut canvas, title_top, "requests/s, by how they ended", &ends);
    stack(&mut canvas, &ends, &time, &ends_y);
    lower.y_axis(&mut canvas, &orders_y);
    axis_title(&mut canvas, below - TITLE_ABOVE, "orders/min", &orders);
    order_line(&mut canvas, &orders, &time, &orders_y);
    lower.x_axis(&mut canvas, &time.scale, time.title);
    if ends.is_empty() {
        upper.empty(&mut canvas);
    }
    canvas.finish(spec.title, &description(spec), lower.bottom + LABELS_BELOW)
}

fn axis_title(canvas: &mut Canvas, top: f64, measure: &str, bins: &[Bin]) {
    let title = match bins.first().map_or(1, |bin| bin.to_s - bin.from_s) {
        1 => measure.to_owned(),
        size => format!("{measure} (mean of {size} s)"),
    };
    frame::y_title(canvas, top, &title);
}

/// The means over some consecutive seconds, which form one step of a strip.
struct Bin {
    from_s: usize,
    to_s: usize,
    /// Requests per second with each outcome, in the order of [`LAYERS`].
    layers: [f64; 5],
    /// Orders per minute.
    orders: f64,
}

/// Groups consecutive seconds into at most `most` bins. `seconds` are the sum of `runs` runs, and
/// the values of a bin are means over these runs.
fn bins(seconds: &[Second], runs: usize, most: usize) -> Vec<Bin> {
    let rounds = [1, 2, 5, 10, 15, 30, 60].into_iter();
    let size = rounds.into_iter().find(|size| seconds.len() <= size * most);
    let size = size.unwrap_or_else(|| seconds.len().div_ceil(most));
    let bin = |(i, some): (usize, &[Second])| {
        let mean = |part: fn(&Second) -> u64| {
            let sum = some.iter().map(part).map(|part| part as f64).sum::<f64>();
            sum / (some.len() * runs.max(1)) as f64
        };
        Bin {
            from_s: i * size,
            to_s: i * size + some.len(),
            layers: [
                mean(|second| second.completed),
                mean(|second| second.timed_out),
                mean(|second| second.dropped),
                mean(|second| second.terminated),
                mean(|second| second.failed),
            ],
            orders: mean(|second| second.orders) * 60.0,
        }
    };
    seconds.chunks(size).enumerate().map(bin).collect()
}

fn up_to(high: f64, most: usize, stretch: (f64, f64)) -> Scale {
    let axis = Axis { cover: vec![0.0], ..Axis::default() };
    Scale::new(&axis, std::iter::once(high), most, stretch)
}

/// The time axis, in seconds or in minutes, depending on the length of the run.
struct Time {
    scale: Scale,
    title: &'static str,
    unit_s: f64,
}

impl Time {
    fn new(seconds: usize, plot: Plot) -> Self {
        let (title, unit_s) = match seconds {
            0..=LONGEST_IN_SECONDS => ("time since the start, s", 1.0),
            _ => ("time since the start, min", 60.0),
        };
        let end = seconds.max(1) as f64 / unit_s;
        Self { scale: Scale::exact(0.0, end, (plot.left, plot.right)), title, unit_s }
    }

    fn at(&self, second: usize) -> String {
        px(self.scale.place(second as f64 / self.unit_s))
    }
}

fn stack(canvas: &mut Canvas, bins: &[Bin], time: &Time, y: &Scale) {
    let (Some(first), Some(last)) = (bins.first(), bins.last()) else { return };
    for (k, (_, class, hatch)) in LAYERS.iter().enumerate() {
        if bins.iter().all(|bin| bin.layers[k] == 0.0) {
            continue;
        }
        let height = |bin: &Bin, layers: usize| px(y.place(bin.layers[..layers].iter().sum()));
        let mut outline = format!("M{} {}", time.at(first.from_s), height(first, k));
        let ahead = |bin: &Bin| format!("V{}H{}", height(bin, k + 1), time.at(bin.to_s));
        outline.extend(bins.iter().map(ahead));
        outline.extend(["V".into(), height(last, k)]);
        let back = |bin: &Bin| format!("V{}H{}", height(bin, k), time.at(bin.from_s));
        outline.extend(bins.iter().rev().map(back));
        outline.push('z');
        legend::layer(canvas, class, *hatch, &outline);
    }
}

fn order_line(canvas: &mut Canvas, bins: &[Bin], time: &Time, y: &Scale) {
    let Some(first) = bins.first() else { return };
    let start = format!("M{} {}", time.at(first.from_s), px(y.place(first.orders)));
    let step = |bin: &Bin| format!("V{}H{}", px(y.place(bin.orders)), time.at(bin.to_s));
    let path: String = std::iter::once(start).chain(bins.iter().map(step)).collect();
    canvas.path("line c5", &path);
}

/// Returns the SVG definitions of hatch patterns, which distinguish the layers without colour.
fn hatches() -> String {
    let stripes = [("rising", 45), ("falling", -45)].map(|(name, degrees)| {
        format!(
            "<pattern id=\"{ID}-{name}\" width=\"5\" height=\"5\" \
             patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate({degrees})\">\
             <path class=\"hatch\" d=\"M.5 0V5\"/></pattern>"
        )
    });
    format!("<defs>{}</defs>", stripes.concat())
}

fn description(spec: &Timeline<'_>) -> String {
    let total = |part: fn(&Second) -> u64| count(spec.seconds.iter().map(part).sum());
    let mut words = format!(
        "{} seconds: {} requests completed, {} timed out, {} dropped, {} terminated, {} failed; {} orders.",
        count(spec.seconds.len() as u64),
        total(|second| second.completed),
        total(|second| second.timed_out),
        total(|second| second.dropped),
        total(|second| second.terminated),
        total(|second| second.failed),
        total(|second| second.orders),
    );
    words.extend(spec.phases.iter().map(|phase| {
        let [from, to] = [phase.from_s, phase.to_s].map(|second| short(second, 1));
        format!(" {} from {from} s to {to} s.", phase.label)
    }));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seconds: &[Second], phases: &[Phase]) -> String {
        let ceiling = Ceiling::default();
        timeline(&Timeline { title: "t", seconds, runs: 1, phases, ceiling }).to_string()
    }

    fn busy(n: usize) -> Vec<Second> {
        vec![
            Second {
                generated: 9,
                completed: 5,
                timed_out: 2,
                dropped: 2,
                orders: 1,
                ..Second::default()
            };
            n
        ]
    }

    #[test]
    fn layers_that_are_empty_all_the_time_are_not_drawn() {
        let svg = drawn(&busy(20), &[]);
        assert_eq!(svg.matches("<path class=\"completed\"").count(), 2, "one in the key");
        assert_eq!(svg.matches("<path class=\"failed\"").count(), 1, "only in the key");
    }

    #[test]
    fn a_long_run_is_drawn_in_a_bounded_number_of_steps() {
        let bins = bins(&busy(3_601), 1, MOST_STEPS);
        assert!(bins.len() <= MOST_STEPS);
        assert_eq!(bins.last().unwrap().to_s, 3_601);
        assert!(bins.iter().all(|bin| (bin.orders - 60.0).abs() < 1e-9));
        assert!(drawn(&busy(3_601), &[]).len() < 40_000);
        assert!(drawn(&busy(601), &[]).contains("(mean of 5 s)"));
    }

    #[test]
    fn the_sum_of_several_runs_is_drawn_as_their_mean() {
        let [one, four] = [1, 4].map(|runs| bins(&busy(10), runs, MOST_STEPS)[3].layers[0]);
        assert_eq!((one, four), (5.0, 1.25));
    }

    #[test]
    fn phases_are_shaded_and_their_names_do_not_meet() {
        let phase = |label: &str, from_s, to_s| Phase { label: label.into(), from_s, to_s };
        let phases = [
            phase("calm & quiet", 0.0, 30.0),
            phase("the first of two crowds", 30.0, 31.0),
            phase("the second of two crowds", 31.0, 32.0),
            phase("too much", 32.0, 33.0),
            phase("after", 60.0, f64::NAN),
        ];
        let svg = drawn(&busy(90), &phases);
        assert!(svg.contains(">calm &amp; quiet</text>"));
        assert!(svg.contains(">the first of two crowds</text>"));
        assert!(svg.contains(">the second of two crowds</text>"));
        assert!(!svg.contains(">too much</text>"));
        assert!(svg.contains("too much from 32 s to 33 s."));
    }

    #[test]
    fn nothing_at_all_is_a_figure_too() {
        for svg in [drawn(&[], &[]), drawn(&[Second::default(); 3], &[]), drawn(&busy(1), &[])] {
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        assert!(drawn(&[], &[]).contains("nothing to show"));
    }

    #[test]
    fn two_figures_of_a_page_share_no_id() {
        let svg = timeline(&Timeline {
            title: "t",
            seconds: &busy(3),
            runs: 1,
            phases: &[],
            ceiling: Ceiling::default(),
        });
        assert!(svg.element("f1").contains("url(#f1-rising)"));
        assert!(!svg.element("f2").contains("f1-"));
    }
}
