//! Draws curves: one or more series of y against x.

use super::canvas::{Canvas, Look, px};
use super::frame::{self, LABELS_BELOW, Plot, TITLE_ABOVE};
use super::legend::{self, Sample};
use super::scale::Scale;
use super::{Axis, Reference, Svg};
use crate::number::short;

/// The data of a figure with curves.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    /// The title of the figure.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, one curve each.
    pub series: Vec<Series>,
    /// A value of x that is marked by a line for comparison; `None` marks none.
    pub reference: Option<Reference>,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name of the series in the legend.
    pub label: String,
    /// The points in the order of x. The line is interrupted where a value is missing (NaN).
    pub points: Vec<Point>,
}

/// One point of a curve.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The position on the horizontal axis.
    pub x: f64,
    /// The position on the vertical axis; NaN if the value is missing.
    pub y: f64,
    /// The standard error of `y`, drawn as a whisker up and down; `None` draws no whisker.
    pub error: Option<f64>,
}

/// The height of the plot, in SVG units.
const HEIGHT: f64 = 270.0;
/// The number of points above which a series has a marker only at some of its points. More markers
/// would hide the line.
const MOST_MARKERS: usize = 40;
/// The approximate number of markers on a series of more than [`MOST_MARKERS`] points: enough to
/// distinguish the series.
const FEW_MARKERS: usize = 8;

/// Draws the curves as an SVG figure.
pub fn curves(spec: &Curves) -> Svg {
    let mut canvas = Canvas::new();
    let entries: Vec<(Sample, &str)> = spec
        .series
        .iter()
        .enumerate()
        .map(|(i, series)| (Sample::Line(Look::of(i)), series.label.as_str()))
        .collect();
    let top = legend::draw(&mut canvas, &entries) + TITLE_ABOVE;

    let points = || spec.series.iter().flat_map(|series| &series.points);
    let whiskers = points().flat_map(|point| ends(point).into_iter().flatten());
    let y = Scale::new(&spec.y, whiskers, 6, (top + HEIGHT, top));
    let plot = Plot::new(top, HEIGHT, y.label_width());
    // The first and the last point keep a distance from the sides of the plot.
    let inside = (plot.left + 12.0, plot.right - 12.0);
    let x = Scale::spread(&spec.x, &points().map(|point| point.x), inside);

    plot.y_axis(&mut canvas, &y);
    frame::y_title(&mut canvas, top - TITLE_ABOVE, &spec.y.title);
    plot.x_axis(&mut canvas, &x, &spec.x.title);
    if let Some(reference) = &spec.reference {
        // The label of the reference is at the bottom, because the title of the y axis is at the
        // top.
        plot.vertical_line(&mut canvas, &x, reference, plot.bottom - 8.0);
    }
    for (i, series) in spec.series.iter().enumerate() {
        curve(&mut canvas, series, Look::of(i), &x, &y);
    }
    if !points().any(|point| x.at(point.x).is_some() && y.at(point.y).is_some()) {
        plot.empty(&mut canvas);
    }
    canvas.finish(&spec.title, &description(spec), plot.bottom + LABELS_BELOW)
}

/// Returns the values at the two ends of a point's whisker. Without a whisker, returns the point's
/// own value and `None`.
fn ends(point: &Point) -> [Option<f64>; 2] {
    match point.error {
        Some(error) if error.is_finite() => [Some(point.y - error), Some(point.y + error)],
        _ => [Some(point.y), None],
    }
}

fn curve(canvas: &mut Canvas, series: &Series, look: Look, x: &Scale, y: &Scale) {
    let place = |point: &Point| Some((x.at(point.x)?, y.at(point.y)?));
    canvas.path(
        &format!("line c{} d{}", look.colour, look.dash),
        &line(series.points.iter().map(place)),
    );
    let every = match series.points.len() {
        0..=MOST_MARKERS => 1,
        many => many / FEW_MARKERS,
    };
    for point in series.points.iter().step_by(every) {
        let Some((at_x, at_y)) = place(point) else { continue };
        canvas.hover(&said(series, point), |canvas| {
            if let [Some(low), Some(high)] = ends(point).map(|end| y.at(end?)) {
                canvas.line(&format!("thin c{}", look.colour), (at_x, low), (at_x, high));
            }
            canvas.path(&format!("mark c{}", look.colour), &look.marker(at_x, at_y));
        });
    }
}

/// Returns an SVG path through the points, interrupted where a point is missing.
fn line(places: impl Iterator<Item = Option<(f64, f64)>>) -> String {
    let mut path = String::new();
    let mut drawing = false;
    for place in places {
        if let Some((x, y)) = place {
            path.push(if drawing { 'L' } else { 'M' });
            path.extend([px(x), " ".into(), px(y)]);
        }
        drawing = place.is_some();
    }
    path
}

fn said(series: &Series, point: &Point) -> String {
    let error = point.error.filter(|error| error.is_finite());
    let error = error.map_or(String::new(), |error| format!(" ± {}", short(error, 2)));
    format!("{}, at {}: {}{error}", series.label, short(point.x, 3), short(point.y, 2))
}

fn description(spec: &Curves) -> String {
    let mut words = format!("Curves of {} against {}.", spec.y.title, spec.x.title);
    words.extend(spec.series.iter().map(describe_ends));
    words
}

/// Describes a curve in words by its first and last values, for readers who cannot see it.
fn describe_ends(series: &Series) -> String {
    let drawn = |point: &&Point| point.x.is_finite() && point.y.is_finite();
    let point = |point: &Point| format!("{} at {}", short(point.y, 2), short(point.x, 3));
    let first = series.points.iter().find(drawn).map(point);
    let last = series.points.iter().rfind(drawn).map(point);
    match (first, last) {
        (Some(first), Some(last)) => format!(" {}: from {first} to {last}.", series.label),
        _ => format!(" {}: no values.", series.label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(label: &str, points: &[(f64, f64)]) -> Series {
        let point = |&(x, y): &(f64, f64)| Point { x, y, error: Some(0.5) };
        Series { label: label.into(), points: points.iter().map(point).collect() }
    }

    fn drawn(series: Vec<Series>, log: bool) -> String {
        let x = Axis { title: "ρ".into(), log, ..Axis::default() };
        curves(&Curves { title: "t".into(), x, series, ..Curves::default() }).to_string()
    }

    #[test]
    fn every_series_has_its_line_and_every_point_its_marker() {
        let svg =
            drawn(vec![series("a", &[(1.0, 2.0), (2.0, 3.0)]), series("b", &[(1.0, 1.0)])], false);
        assert_eq!(svg.matches("class=\"line c0 d0\"").count(), 2, "one in the key");
        assert_eq!(svg.matches("class=\"line c1 d1\"").count(), 2);
        assert_eq!(svg.matches("class=\"mark").count(), 2 + 3);
        assert!(svg.contains("<title>a, at 2: 3 ± 0.5</title>"));
        assert!(svg.contains("role=\"img\"") && svg.contains("<desc>"));
    }

    #[test]
    fn a_curve_of_many_points_has_a_few_markers() {
        let points: Vec<(f64, f64)> = (0..1_000).map(|i| (f64::from(i), 1.0)).collect();
        let svg = drawn(vec![series("a", &points)], false);
        assert_eq!(svg.matches("class=\"mark").count(), 1 + FEW_MARKERS);
    }

    #[test]
    fn the_line_breaks_where_a_value_is_missing() {
        let places = [Some((0.0, 0.0)), Some((1.0, 1.0)), None, Some((3.0, 3.0))];
        assert_eq!(line(places.into_iter()), "M0 0L1 1M3 3");
    }

    #[test]
    fn odd_numbers_neither_panic_nor_show() {
        let odd = [f64::NAN, f64::INFINITY, -1e308, 0.0, 5.0, 1e308];
        let points: Vec<(f64, f64)> =
            odd.iter().flat_map(|x| odd.iter().map(move |y| (*x, *y))).collect();
        for log in [false, true] {
            for data in [vec![], vec![series("e", &[])], vec![series("o", &points)]] {
                let svg = drawn(data, log);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            }
        }
        assert!(drawn(vec![], false).contains("nothing to show"));
    }
}
