//! Writes a report as one self-contained HTML file.
//!
//! The order suits a reader in a hurry: the verdict, the command to repeat the run, then the
//! evidence. The content security policy in the head forbids every request and script. An error in
//! the escaping below could therefore only make the page look wrong.

use bywash_terminal::{Align, Table};

use crate::figure::{self, Svg};
use crate::text::{escape, escape_lines};

mod file;

pub use file::{write, write_figures};

/// The content of a report page.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The title: the subject of the report.
    pub title: String,
    /// The verdict on a promise; `None` if nothing was promised.
    pub verdict: Option<Verdict>,
    /// The environment of the run, such as the machine: pairs of name and value.
    pub environment: Vec<(String, String)>,
    /// The command that repeats the run.
    pub command: String,
    /// The sections with the evidence, in order.
    pub sections: Vec<Section>,
}

/// The verdict on a promise, in one line.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Whether the promise was kept.
    pub kept: bool,
    /// The promise and the measured result, in one line.
    pub line: String,
}

/// A heading and its content.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The heading.
    pub heading: String,
    /// The explanation above the content; an empty line starts a new paragraph.
    pub prose: String,
    /// The content: tables, figures and texts.
    pub body: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A table.
    Table(Table),
    /// A figure under its title.
    Figure(Svg),
    /// Paragraphs, separated by empty lines.
    Text(String),
    /// A caution that must be read before the rest of the section.
    Warning(String),
    /// Folded content, behind its summary.
    Details {
        /// The summary that is shown while the block is folded.
        summary: String,
        /// The content that is shown when opened.
        body: Vec<Block>,
    },
}

impl Block {
    fn figures(&self) -> Vec<&Svg> {
        match self {
            Self::Figure(svg) => vec![svg],
            Self::Details { body, .. } => body.iter().flat_map(Self::figures).collect(),
            Self::Table(_) | Self::Text(_) | Self::Warning(_) => Vec::new(),
        }
    }
}

/// The content security policy of the page. It forbids everything except the style in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
const STYLE: &str = include_str!("style.css");

impl Report {
    /// Returns all figures of the report in the order of the page, including those in folded
    /// blocks.
    pub(crate) fn figures(&self) -> Vec<&Svg> {
        let blocks = self.sections.iter().flat_map(|section| &section.body);
        blocks.flat_map(Block::figures).collect()
    }

    /// Returns the page as a complete HTML document.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let mut page = Page::default();
        page.add(&format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n",
            figure::STYLE
        ));
        page.add(&format!("<header>\n<p class=\"maker\">bywash report</p>\n<h1>{title}</h1>\n"));
        page.verdict(self.verdict.as_ref());
        page.origin(&self.environment, &self.command);
        page.add("</header>\n<main>\n");
        for section in &self.sections {
            page.section(section);
        }
        page.add(&format!(
            "</main>\n<footer>Made by bywash {}. This file is complete in itself: it runs no \
             script and requests nothing.</footer>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION")
        ));
        page.html
    }
}

/// A page that is being written.
#[derive(Default)]
struct Page {
    html: String,
    figures: usize,
}

impl Page {
    fn add(&mut self, html: &str) {
        self.html.push_str(html);
    }

    fn verdict(&mut self, verdict: Option<&Verdict>) {
        let Some(Verdict { kept, line }) = verdict else { return };
        let (class, words) = match kept {
            true => ("kept", "✓ Promise kept."),
            false => ("broken", "✗ Promise not kept."),
        };
        let line = escape(line);
        self.add(&format!("<p class=\"verdict {class}\"><strong>{words}</strong> {line}</p>\n"));
    }

    /// Writes the environment in which the figures were measured, and the command to repeat the
    /// run.
    fn origin(&mut self, environment: &[(String, String)], command: &str) {
        if !environment.is_empty() {
            self.add("<dl>\n");
            for (name, value) in environment {
                self.add(&format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value)));
            }
            self.add("</dl>\n");
        }
        if !command.is_empty() {
            let command = escape_lines(command);
            self.add(&format!(
                "<pre aria-label=\"Command to repeat the run\"><code>{command}</code></pre>\n"
            ));
        }
    }

    fn section(&mut self, section: &Section) {
        self.add(&format!("<section>\n<h2>{}</h2>\n", escape(&section.heading)));
        self.paragraphs(&section.prose);
        for block in &section.body {
            self.block(block, &section.heading);
        }
        self.add("</section>\n");
    }

    /// Writes a block. `about` names a table for screen readers, because a table has no title of
    /// its own.
    fn block(&mut self, block: &Block, about: &str) {
        match block {
            Block::Table(table) => self.table(table, about),
            Block::Figure(svg) => self.figure(svg),
            Block::Text(text) => self.paragraphs(text),
            Block::Warning(text) => {
                let text = escape(text);
                self.add(&format!("<p class=\"warning\"><strong>! Caution.</strong> {text}</p>\n"));
            }
            Block::Details { summary, body } => {
                self.add(&format!("<details>\n<summary>{}</summary>\n", escape(summary)));
                for block in body {
                    self.block(block, summary);
                }
                self.add("</details>\n");
            }
        }
    }

    fn paragraphs(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        for paragraph in
            lines.split(|line| line.trim().is_empty()).filter(|lines| !lines.is_empty())
        {
            self.add(&format!("<p>{}</p>\n", escape(&paragraph.join(" "))));
        }
    }

    fn figure(&mut self, svg: &Svg) {
        self.figures += 1;
        let title = escape(svg.title());
        let element = svg.element(&format!("f{}", self.figures));
        self.add(&format!(
            "<figure>\n<figcaption>{title}</figcaption>\n\
             <div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"{title}\">{element}</div>\n\
             </figure>\n"
        ));
    }

    /// Writes a table. On a narrow screen the table scrolls, and its first column stays visible.
    fn table(&mut self, table: &Table, about: &str) {
        let about = escape(about);
        self.add(&format!(
            "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"{about}\">\n<table>\n<thead><tr>"
        ));
        for (column, heading) in table.header.iter().enumerate() {
            let class = class(table, column);
            self.add(&format!("<th scope=\"col\"{class}>{}</th>", escape(heading)));
        }
        self.add("</tr></thead>\n<tbody>\n");
        for row in &table.rows {
            self.row(table, row);
        }
        self.add("</tbody>\n</table>\n</div>\n");
    }

    fn row(&mut self, table: &Table, row: &[String]) {
        self.add("<tr>");
        for column in 0..table.header.len() {
            let entry = escape(row.get(column).map_or("", String::as_str));
            let class = class(table, column);
            let cell = match column {
                0 => format!("<th scope=\"row\"{class}>{entry}</th>"),
                _ => format!("<td{class}>{entry}</td>"),
            };
            self.add(&cell);
        }
        self.add("</tr>\n");
    }
}

fn class(table: &Table, column: usize) -> &'static str {
    match table.align_of(column) {
        Align::Left => "",
        Align::Right => " class=\"number\"",
    }
}

#[cfg(test)]
mod tests;
