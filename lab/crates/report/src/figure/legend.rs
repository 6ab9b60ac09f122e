//! Draws the legend of a figure: a sample and a name for each series, in rows above the plot.

use super::canvas::{Canvas, Look, WIDTH, text_width};
use crate::text::truncate;

/// The sample that shows how a series is drawn.
#[derive(Clone, Copy)]
pub(super) enum Sample {
    /// A line with the dash pattern and marker of the series.
    Line(Look),
    /// A bar, with the marker of the series in front of it.
    Bar(Look),
    /// A filled layer. The values are the CSS class of its fill, and the id of its hatching, if
    /// any.
    Layer(&'static str, Option<&'static str>),
}

/// The height of a row, in SVG units.
const ROW: f64 = 20.0;
/// The width of a sample, in SVG units.
const SAMPLE: f64 = 26.0;
/// The distance between a sample and its name, and the distance between the name and the next
/// sample, in SVG units.
const GAPS: (f64, f64) = (7.0, 20.0);
/// The maximum number of characters of a name; longer names are cut. The figure's description has
/// the whole name.
const LONGEST: usize = 44;

/// Draws the legend at the top of the figure. Returns the vertical position at which it ends.
pub(super) fn draw(canvas: &mut Canvas, entries: &[(Sample, &str)]) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for (sample, name) in entries {
        let name = truncate(name, LONGEST);
        let width = SAMPLE + GAPS.0 + text_width(&name) + GAPS.1;
        if x > 0.0 && x + width > WIDTH {
            (x, y) = (0.0, y + ROW);
        }
        draw_sample(canvas, *sample, x, y + ROW / 2.0);
        canvas.text("key", (x + SAMPLE + GAPS.0, y + ROW / 2.0 + 4.0), &name);
        x += width;
    }
    if entries.is_empty() { 0.0 } else { y + ROW + 4.0 }
}

fn draw_sample(canvas: &mut Canvas, sample: Sample, x: f64, y: f64) {
    match sample {
        Sample::Line(look) => {
            let class = format!("line c{} d{}", look.colour, look.dash);
            canvas.line(&class, (x, y), (x + SAMPLE, y));
            canvas.path(&format!("mark c{}", look.colour), &look.marker(x + SAMPLE / 2.0, y));
        }
        Sample::Bar(look) => {
            canvas.path(&format!("mark c{}", look.colour), &look.marker(x + 5.0, y));
            canvas.rect(&format!("bar c{}", look.colour), [x + 12.0, y - 5.0, 14.0, 10.0]);
        }
        Sample::Layer(class, hatch) => {
            layer(canvas, class, hatch, &format!("M{x} {}h{SAMPLE}v11h-{SAMPLE}z", y - 5.5));
        }
    }
}

/// Draws a filled outline. If `hatch` is given, draws the hatching over it.
pub(super) fn layer(canvas: &mut Canvas, class: &str, hatch: Option<&str>, outline: &str) {
    canvas.path(class, outline);
    if let Some(hatch) = hatch {
        let id = super::canvas::ID;
        canvas.raw(&format!("<path fill=\"url(#{id}-{hatch})\" d=\"{outline}\"/>"));
    }
}
