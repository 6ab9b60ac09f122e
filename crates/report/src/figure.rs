//! Figures as SVG: curves against a load, bars, and a run second by second.
//!
//! Colours are CSS custom properties, so one figure serves light, dark and print. Colour is never
//! the only carrier: series differ in dash and marker too, stacked layers in hatching, and the
//! hues (after Okabe and Ito) stay apart for the colour-blind. Each figure is one image with a
//! name and a description in words; hovering a point tells its value, without a script.
//!
//! Any value may be NaN or infinite, any series empty: such a point is not drawn.

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

/// What a figure needs to be seen: its colours, strokes and type.
pub const STYLE: &str = include_str!("figure/style.css");

/// What an axis shows.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// The quantity, with its unit.
    pub title: String,
    /// Equal distances for equal ratios. Values that are not positive are then not drawn.
    pub log: bool,
    /// Values that must be on the axis whatever the data are: zero, 100 %.
    pub cover: Vec<f64>,
}

/// A value to compare with, drawn across the plot: capacity, the bound.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Where.
    pub value: f64,
    /// What it is.
    pub label: String,
}

/// A finished figure. Everything in it that came from outside is escaped.
#[derive(Clone, Debug)]
pub struct Svg {
    title: String,
    /// With [`canvas::ID`] where a name must be unique within the page.
    markup: String,
}

impl Svg {
    /// What the figure shows, as plain text.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The `<svg>` element for use in a page that has [`STYLE`]; `id` sets its names apart from
    /// those of the page's other figures.
    pub fn element(&self, id: &str) -> String {
        self.markup.replace(canvas::ID, &escape(id))
    }
}

/// A whole SVG file, with its style.
impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = self.element("f");
        let (open, rest) = element.split_once('>').unwrap_or(("<svg", "</svg>"));
        write!(f, "{open}>\n<style>{STYLE}</style>{rest}")
    }
}
