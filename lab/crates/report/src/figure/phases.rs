//! Draws the phases of a run: bands behind the strips of a timeline, with their names above.

use super::Phase;
use super::canvas::{Canvas, text_width};
use super::frame::Plot;
use crate::text::truncate;

/// The height of a row of names, in SVG units.
const ROW: f64 = 16.0;
/// The maximum number of rows of names. A name that would overlap another one is drawn one row
/// higher. If the name overlaps in the highest row too, it appears only in the figure's
/// description.
const ROWS: usize = 2;
/// The maximum number of characters of a name; longer names are cut.
const LONGEST: usize = 30;

/// Returns the height that the names of `phases` need above a plot, in SVG units.
pub(super) fn room(phases: &[Phase]) -> f64 {
    phases.len().min(ROWS) as f64 * ROW
}

/// Draws the phases behind the data. Every other phase is shaded, from the top of `plot` to its
/// bottom. `at` returns the horizontal position of a time in seconds.
pub(super) fn draw(
    canvas: &mut Canvas,
    phases: &[Phase],
    plot: Plot,
    at: impl Fn(f64) -> Option<f64>,
) {
    let within = |second| Some(at(second)?.clamp(plot.left, plot.right));
    let bands: Vec<(f64, f64, &Phase)> = phases
        .iter()
        .filter_map(|phase| Some((within(phase.from_s)?, within(phase.to_s)?, phase)))
        .collect();
    for (from, to, _) in bands.iter().step_by(2) {
        canvas.rect("shade", [*from, plot.top, to - from, plot.bottom - plot.top]);
    }
    names(canvas, &bands, plot);
}

fn names(canvas: &mut Canvas, bands: &[(f64, f64, &Phase)], plot: Plot) {
    let mut taken = [f64::MIN; ROWS];
    let mut texts = Vec::new();
    for (from, _, phase) in bands {
        let name = truncate(&phase.label, LONGEST);
        let width = text_width(&name);
        let x = from.min(plot.right - width).max(plot.left);
        let row = taken.iter().position(|end| *end + 10.0 < x);
        let y = plot.top - 6.0 - ROW * row.unwrap_or(0) as f64;
        if *from > plot.left {
            let top = if row.is_some() { y + 4.0 } else { plot.top };
            canvas.line("reference", (*from, top), (*from, plot.bottom));
        }
        if let Some(row) = row {
            taken[row] = x + width;
            texts.push(((x + 2.0, y), name));
        }
    }
    // Names are drawn after all lines, so that a name interrupts the line behind it.
    for (place, name) in texts {
        canvas.text("tick halo", place, &name);
    }
}
