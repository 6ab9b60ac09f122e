//! Writes SVG markup: a few shapes, with rounded coordinates and escaped text.

use bywash_terminal::text::{columns, printable};

use super::Svg;

use crate::text::escape;

/// A placeholder for the id of the figure, until the page assigns one. It is a control character
/// that [`escape`] always replaces, so no label can be mistaken for it.
pub(super) const ID: char = '\u{1}';

/// The width of every figure, in SVG units. Text of 12 units is small but readable at this width.
pub(super) const WIDTH: f64 = 720.0;

/// The number of marker shapes. If there are more series, the shapes repeat.
const MARKERS: usize = 6;
/// The number of series colours in the style sheet. If there are more series, the colours repeat.
const COLOURS: usize = 6;
/// The number of dash patterns in the style sheet; the first is a solid line.
const DASHES: usize = 4;

/// A figure that is being drawn.
pub(super) struct Canvas {
    markup: String,
}

impl Canvas {
    pub(super) fn new() -> Self {
        Self { markup: String::new() }
    }

    /// Returns the finished figure, `height` SVG units high.
    pub(super) fn finish(self, title: &str, description: &str, height: f64) -> Svg {
        let markup = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" role=\"img\" \
             viewBox=\"0 0 {} {}\"><title>{}</title><desc>{}</desc>{}</svg>",
            px(WIDTH),
            px(height),
            escape(title),
            escape(description),
            self.markup
        );
        Svg { title: printable(title), markup }
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(px);
        self.add(&format!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        ));
    }

    /// Draws a rectangle of the CSS class `class`. `x` and `y` are its upper left corner, in SVG
    /// units.
    pub(super) fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4]) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(px);
        self.add(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
    }

    pub(super) fn path(&mut self, class: &str, path: &str) {
        self.add(&format!("<path class=\"{class}\" d=\"{path}\"/>"));
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let [x, y] = [x, y].map(px);
        self.add(&format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escape(text)));
    }

    /// Draws the shapes of `draw`, which show `words` while the pointer is over them.
    pub(super) fn hover(&mut self, words: &str, draw: impl FnOnce(&mut Self)) {
        self.add(&format!("<g><title>{}</title>", escape(words)));
        draw(self);
        self.add("</g>");
    }

    /// Appends markup without escaping it. The markup must come from this crate, never from
    /// outside.
    pub(super) fn raw(&mut self, markup: &str) {
        self.markup.push_str(markup);
    }

    fn add(&mut self, element: &str) {
        self.markup.push_str(element);
    }
}

/// Formats a coordinate to a tenth of an SVG unit. A value that is not a number becomes zero,
/// because it would invalidate the whole attribute. Scales never return such a value.
pub(super) fn px(value: f64) -> String {
    if !value.is_finite() {
        return "0".into();
    }
    // Adding zero turns −0 into 0.
    ((value * 10.0).round() / 10.0 + 0.0).to_string()
}

/// Estimates the width of `text` at font size 12, in SVG units. The reader's font is unknown, so
/// the estimate assumes the widest of the common system fonts.
pub(super) fn text_width(text: &str) -> f64 {
    columns(text) as f64 * 7.4
}

/// The style of a series: colour, dash pattern and marker. These three repeat with different
/// periods, so that two series of the same colour differ in dash pattern or marker.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) colour: usize,
    pub(super) dash: usize,
    marker: usize,
}

impl Look {
    pub(super) fn of(i: usize) -> Self {
        let turn = i / COLOURS;
        Self { colour: i % COLOURS, dash: (i + turn) % DASHES, marker: (i + turn) % MARKERS }
    }

    /// Returns the SVG path of the marker around a point.
    pub(super) fn marker(self, x: f64, y: f64) -> String {
        let corners: &[(f64, f64)] = match self.marker {
            0 => {
                let [left, y] = [x - 4.0, y].map(px);
                return format!("M{left} {y}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z");
            }
            1 => &[(-3.8, -3.8), (3.8, -3.8), (3.8, 3.8), (-3.8, 3.8)],
            2 => &[(0.0, -5.0), (4.8, 3.6), (-4.8, 3.6)],
            3 => &[(0.0, -5.4), (5.4, 0.0), (0.0, 5.4), (-5.4, 0.0)],
            4 => &[(0.0, 5.0), (4.8, -3.6), (-4.8, -3.6)],
            _ => &[(-5.4, -2.0), (5.4, -2.0), (5.4, 2.0), (-5.4, 2.0)],
        };
        let corner = |(dx, dy): &(f64, f64)| format!("{} {}", px(x + dx), px(y + dy));
        let corners: Vec<String> = corners.iter().map(corner).collect();
        format!("M{}z", corners.join("L"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        assert_eq!(px(12.345), "12.3");
        assert_eq!(px(-0.01), "0");
        assert_eq!(px(f64::NAN), "0");
    }

    #[test]
    fn the_first_two_dozen_series_all_look_different() {
        let looks = (0..24).map(Look::of).map(|look| (look.colour, look.dash, look.marker));
        let different: std::collections::HashSet<_> = looks.collect();
        assert_eq!(different.len(), 24);
    }

    #[test]
    fn a_label_cannot_pose_as_the_id_of_the_figure() {
        let mut canvas = Canvas::new();
        canvas.text("tick", (0.0, 0.0), "\u{1}-x");
        let svg = canvas.finish("</title><script>", "\u{1}", 10.0);
        assert!(!svg.element("mine").contains("mine"));
        assert!(!svg.element("mine").contains("<script>"));
    }
}
