//! Figures as SVG: curves, bars, and timelines that show a run second by second.
//!
//! Colours are CSS custom properties, so one figure serves light, dark and print. Colour is never
//! the only distinction: series also differ in dash and marker, and stacked layers in hatching. The
//! hues (after Okabe and Ito) are distinct for colour-blind readers. Each figure is one image with
//! a name and a description in words. Hovering over a point shows its value, without a script.
//!
//! Any value may be NaN or infinite, and any series may be empty. A point without a finite value is
//! not drawn.

mod bars;
mod canvas;
mod curves;
mod frame;
mod legend;
mod phases;
mod scale;
mod timeline;

pub use bars::{Bars, bars};
pub use curves::{Curves, Point, Series, curves};
pub use timeline::{Ceiling, Phase, Timeline, timeline};

use std::fmt;

use crate::text::escape;

/// The CSS style of figures: colours, strokes and type.
pub const STYLE: &str = include_str!("style.css");

/// The description of an axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// The title of the axis: the quantity, with its unit.
    pub title: String,
    /// Whether the axis is logarithmic. On a logarithmic axis, values that are not positive are not
    /// drawn.
    pub log: bool,
    /// Values that the axis must include whatever the data are, such as zero or 100 %.
    pub cover: Vec<f64>,
}

/// A value for comparison that is drawn as a line across the plot, such as the capacity.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The value on the axis.
    pub value: f64,
    /// The label of the line.
    pub label: String,
}

/// A finished figure. All text in it that comes from outside is escaped.
#[derive(Clone, Debug)]
pub struct Svg {
    title: String,
    /// The SVG markup. It has [`canvas::ID`] in place of each id prefix that must be unique within
    /// the page.
    markup: String,
}

impl Svg {
    /// Returns the title of the figure as plain text.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the `<svg>` element for a page that has [`STYLE`]. `id` makes its ids unique among
    /// the page's figures.
    pub fn element(&self, id: &str) -> String {
        self.markup.replace(canvas::ID, &escape(id))
    }
}

/// Writes a complete SVG file, including the style.
impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = self.element("f");
        let (open, rest) = element.split_once('>').unwrap_or(("<svg", "</svg>"));
        write!(f, "{open}>\n<style>{STYLE}svg {{ background: var(--paper); }}</style>{rest}")
    }
}
