//! Resolves `[answers]`. The page for browsers is read here. So a start or a reload reports a page
//! that cannot be read, and no refusal waits for a disk.

use std::path::Path;

use crate::code;
use crate::config::Answers;
use crate::document::Document;
use crate::keys;
use crate::read::Values;
use crate::report::{Finding, Report};
use crate::source::shown;

/// The maximum size of the page in bytes. The limit is low because an overloaded gateway sends the
/// page with every refusal.
const LARGEST: usize = 64 * 1024;

pub(super) fn answers(document: &Document<'_>, report: &mut Report) -> Answers {
    let values = document.section(&keys::ANSWERS, report);
    Answers { page: page(&values, report), details: values.of(&keys::DETAILS).word() }
}

fn page(values: &Values, report: &mut Report) -> Option<String> {
    let (value, at) = values.given(&keys::PAGE)?;
    let read = bywash_files::text(Path::new(value.text()), LARGEST);
    if let Err(why) = &read {
        let message = format!("cannot read `answers.page`: {}", shown(&why.to_string()));
        let help = "name an HTML file of at most 64 KiB in UTF-8".to_string();
        report.add(Finding::new(&code::PAGE, at, message).help(help));
    }
    read.ok()
}
