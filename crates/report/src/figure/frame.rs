//! What stands around the data: gridlines, axes, tick labels, axis titles.

use super::Reference;
use super::canvas::{Canvas, WIDTH};
use super::scale::Scale;
use crate::text::elided;

/// Where the data go.
#[derive(Clone, Copy)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// Room for an axis title above a plot.
pub(super) const TITLE_ABOVE: f64 = 30.0;
/// Room for tick labels and an axis title below a plot.
pub(super) const LABELS_BELOW: f64 = 44.0;
/// Longest axis title or note, in characters.
const LONGEST: usize = 90;

/// What an axis upwards measures, in the room of [`TITLE_ABOVE`] from `top` down: a title that
/// lies reads easier than one that stands.
pub(super) fn y_title(canvas: &mut Canvas, top: f64, title: &str) {
    canvas.text("title", (0.0, top + TITLE_ABOVE / 2.0), &elided(title, LONGEST));
}

impl Plot {
    /// From `top`, `height` high, with room for the labels of `y` on the left.
    pub(super) fn new(top: f64, height: f64, label_width: f64) -> Self {
        Self {
            left: label_width.max(20.0) + 10.0,
            // Half a label of the last tick stands out on the right.
            right: WIDTH - 22.0,
            top,
            bottom: top + height,
        }
    }

    /// Lines across, and their values on the left.
    pub(super) fn y_axis(self, canvas: &mut Canvas, y: &Scale) {
        for tick in &y.ticks {
            let at = y.place(tick.value);
            canvas.line("grid", (self.left, at), (self.right, at));
            canvas.text("tick end", (self.left - 8.0, at + 4.0), &tick.label);
        }
    }

    /// The line below, its ticks and values, and what they measure.
    pub(super) fn x_axis(self, canvas: &mut Canvas, x: &Scale, title: &str) {
        canvas.line("axis", (self.left, self.bottom), (self.right, self.bottom));
        for tick in &x.ticks {
            let at = x.place(tick.value);
            canvas.line("axis", (at, self.bottom), (at, self.bottom + 4.0));
            canvas.text("tick middle", (at, self.bottom + 18.0), &tick.label);
        }
        let middle = f64::midpoint(self.left, self.right);
        canvas.text("title middle", (middle, self.bottom + 37.0), &elided(title, LONGEST));
    }

    /// A dashed line upwards from `reference` on the x axis, with its label at
    /// the height `label_y`.
    pub(super) fn upright(
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
        let label = elided(&reference.label, LONGEST / 2);
        // Whichever side of the line has more room.
        let (class, x) = if at > f64::midpoint(self.left, self.right) {
            ("tick halo end", at - 6.0)
        } else {
            ("tick halo", at + 6.0)
        };
        canvas.text(class, (x, label_y), &label);
    }

    /// Says so where there is nothing to draw.
    pub(super) fn empty(self, canvas: &mut Canvas) {
        let middle = (f64::midpoint(self.left, self.right), f64::midpoint(self.top, self.bottom));
        canvas.text("tick middle", middle, "nothing to show");
    }
}
