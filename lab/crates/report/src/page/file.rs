//! Writes a report's page and figures to disk.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::Report;

/// A counter that distinguishes the temporary files of one process.
static WRITTEN: AtomicU32 = AtomicU32::new(0);

/// Writes the page to `path` atomically: into a temporary file next to it, which is then renamed. A
/// reader sees either the old page or the new one.
///
/// # Errors
///
/// Returns errors of the file system, and `InvalidInput` if `path` does not name a file.
pub fn write(path: impl AsRef<Path>, report: &Report) -> io::Result<()> {
    put(path.as_ref(), &report.html())
}

/// Writes each figure of the report as an SVG file into `folder`, which is created if it is
/// missing. The name of a file is the title of its figure, with a number if the title occurred
/// before. Returns the paths of the files.
///
/// # Errors
///
/// Returns errors of the file system.
pub fn write_figures(folder: impl AsRef<Path>, report: &Report) -> io::Result<Vec<PathBuf>> {
    let folder = folder.as_ref();
    fs::create_dir_all(folder)?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for figure in report.figures() {
        let name = file_name(figure.title());
        let names = (1..).map(|turn: u32| match turn {
            1 => folder.join(format!("{name}.svg")),
            turn => folder.join(format!("{name}-{turn}.svg")),
        });
        let Some(path) = names.into_iter().find(|path| !paths.contains(path)) else { continue };
        put(&path, &figure.to_string())?;
        paths.push(path);
    }
    Ok(paths)
}

/// Returns the file name, without the extension, for a figure with this title. The name consists of
/// the letters and digits of the title in lower case, with a hyphen for all characters between
/// them.
fn file_name(title: &str) -> String {
    let title = title.to_lowercase();
    let words = title.split(|c: char| !c.is_alphanumeric() && c != '.');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    let temporary = temporary_path(path)?;
    let written = fill(&temporary, text).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is returned. A failed removal is ignored, because the temporary file may
        // never have been created.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn temporary_path(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let turn = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let unique = format!(".{}-{turn}.tmp", std::process::id());
    let hidden: OsString = [OsStr::new("."), name, OsStr::new(&unique)].into_iter().collect();
    Ok(path.with_file_name(hidden))
}

/// Writes `text` to a file that must not exist yet, so that a link that someone else has created is
/// not followed.
fn fill(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Bars, bars};
    use crate::page::{Block, Section};

    #[test]
    fn a_figure_is_named_by_its_title() {
        assert_eq!(file_name("Revenue, closes <hidden>"), "revenue-closes-hidden");
        assert_eq!(file_name("Orders at ρ = 1.4"), "orders-at-ρ-1.4");
        assert_eq!(file_name("../x"), "..-x");
    }
    #[test]
    fn figures_of_one_title_have_files_of_their_own() {
        let figure = || bars(&Bars { title: "A b".into(), ..Bars::default() });
        let body = vec![Block::Figure(figure()), Block::Figure(figure())];
        let section = Section { body, ..Section::default() };
        let report = Report { sections: vec![section], ..Report::default() };
        let folder = std::env::temp_dir().join(format!("bywash-figures-{}", std::process::id()));
        let paths = write_figures(&folder, &report).unwrap();
        assert_eq!(paths, [folder.join("a-b.svg"), folder.join("a-b-2.svg")]);
        assert!(paths.iter().all(|path| path.exists()));
        fs::remove_dir_all(folder).unwrap();
    }
}
