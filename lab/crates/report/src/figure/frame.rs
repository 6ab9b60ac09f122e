//! Draws the frame of a figure: gridlines, axes, tick labels and axis titles.

use super::Reference;
use super::canvas::{Canvas, WIDTH};
use super::scale::Scale;
use crate::text::truncate;

/// The rectangle in which data are drawn: its four sides, in SVG units.
#[derive(Clone, Copy)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// Height for an axis title above a plot, in SVG units.
pub(super) const TITLE_ABOVE: f64 = 30.0;
/// Height for tick labels and an axis title below a plot, in SVG units.
pub(super) const LABELS_BELOW: f64 = 44.0;
/// The maximum number of characters of an axis title or note; longer ones are cut.
const LONGEST: usize = 90;

/// Draws the title of the vertical axis in the space of [`TITLE_ABOVE`] units below `top`. The text
/// is horizontal, because that is easier to read than vertical text.
pub(super) fn y_title(canvas: &mut Canvas, top: f64, title: &str) {
    canvas.text("title", (0.0, top + TITLE_ABOVE / 2.0), &truncate(title, LONGEST));
}

impl Plot {
    /// Creates a plot that begins at `top` and is `height` units high. On its left is room for
    /// labels of the vertical axis that are `label_width` wide.
    pub(super) fn new(top: f64, height: f64, label_width: f64) -> Self {
        Self {
            left: label_width.max(20.0) + 10.0,
            // Half of the last tick's label extends beyond the plot on the right side.
            right: WIDTH - 22.0,
            top,
            bottom: top + height,
        }
    }

    /// Draws horizontal gridlines, with their values on the left.
    pub(super) fn y_axis(self, canvas: &mut Canvas, y: &Scale) {
        for tick in &y.ticks {
            let at = y.place(tick.value);
            canvas.line("grid", (self.left, at), (self.right, at));
            canvas.text("tick end", (self.left - 8.0, at + 4.0), &tick.label);
        }
    }

    /// Draws the horizontal axis with its ticks, values and title.
    pub(super) fn x_axis(self, canvas: &mut Canvas, x: &Scale, title: &str) {
        canvas.line("axis", (self.left, self.bottom), (self.right, self.bottom));
        for tick in &x.ticks {
            let at = x.place(tick.value);
            canvas.line("axis", (at, self.bottom), (at, self.bottom + 4.0));
            canvas.text("tick middle", (at, self.bottom + 18.0), &tick.label);
        }
        let middle = f64::midpoint(self.left, self.right);
        canvas.text("title middle", (middle, self.bottom + 37.0), &truncate(title, LONGEST));
    }

    /// Draws a dashed vertical line at `reference` on the x axis, with its label at the height
    /// `label_y`.
    pub(super) fn vertical_line(
        self,
        canvas: &mut Canvas,
        x: &Scale,
        reference: &Reference,
        label_y: f64,
    ) {
        let Some(at) = x.at(reference.value).filter(|at| (self.left..=self.right).contains(at))
        else {
            return;
        };
        canvas.line("reference", (at, self.top), (at, self.bottom));
        let label = truncate(&reference.label, LONGEST / 2);
        // The label goes on the side with more room.
        let (class, x) = if at > f64::midpoint(self.left, self.right) {
            ("tick halo end", at - 6.0)
        } else {
            ("tick halo", at + 6.0)
        };
        canvas.text(class, (x, label_y), &label);
    }

    /// Writes a notice that there is nothing to draw.
    pub(super) fn empty(self, canvas: &mut Canvas) {
        let middle = (f64::midpoint(self.left, self.right), f64::midpoint(self.top, self.bottom));
        canvas.text("tick middle", middle, "nothing to show");
    }
}
