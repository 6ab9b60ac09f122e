//! Reads a [`Config`] from a file, a text or a URL.

use std::path::Path;

use bywash_files::Unreadable;

use crate::code;
use crate::config::Config;
use crate::document::Document;
use crate::problem::Problems;
use crate::report::{Finding, Report};
use crate::resolve;
use crate::source::{Source, shown};
use crate::stopd::Stopd;

/// The largest accepted file, in bytes. A configuration is far smaller.
const LARGEST: usize = 1024 * 1024;

impl Config {
    /// Parses a configuration from `text`. Problems and warnings cite the text by `name`, usually its
    /// file name. Returns the configuration with its warnings, or all problems if one of them is an
    /// error.
    pub fn parse(text: &str, name: &str) -> Result<(Self, Problems), Problems> {
        if text.len() > LARGEST {
            return Err(unreadable(name, &Unreadable::TooLarge(LARGEST)));
        }
        let mut report = Report::new(Source::new(name, text));
        let document = Document::parse(text, &mut report);
        let mut config = resolve::config(&document, &mut report);
        config.hash = hash(text);
        report.finish(config)
    }

    /// Reads a file. Returns the configuration with its warnings, or all problems if one of them is
    /// an error.
    pub fn read(path: impl AsRef<Path>) -> Result<(Self, Problems), Problems> {
        let name = path.as_ref().display().to_string();
        let text = bywash_files::stream(path.as_ref(), LARGEST);
        let text = text.map_err(|why| unreadable(&name, &why))?;
        let (mut config, warnings) = Self::parse(&text, &name)?;
        config.file = Some(path.as_ref().to_owned());
        Ok((config, warnings))
    }

    /// Reads the part of a file that the stop daemon needs: `[stopd]` and `[database.NAME]`. The
    /// file may be a gateway's whole configuration, or have only these tables.
    pub fn read_stopd(path: impl AsRef<Path>) -> Result<(Stopd, Problems), Problems> {
        let name = path.as_ref().display().to_string();
        let text = bywash_files::stream(path.as_ref(), LARGEST);
        let text = text.map_err(|why| unreadable(&name, &why))?;
        let mut report = Report::new(Source::new(&name, &text));
        let document = Document::parse(&text, &mut report);
        let stopd = resolve::stopd_of(&document, &mut report);
        report.finish(stopd)
    }

    /// Returns the configuration of a gateway that is given only the application's address. Every
    /// key has its default: the mode is `observe`, and `other` is the only class.
    pub fn for_upstream(url: &str) -> Result<Self, Problems> {
        let mut report = Report::new(Source::new("--upstream", url));
        let mut config = resolve::config(&Document::for_upstream(url), &mut report);
        config.hash = hash(url);
        report.finish(config).map(|(config, _)| config)
    }
}

/// Returns the first 16 digits of the text's SHA-256, as `sha256sum FILE | cut -c1-16` prints them.
/// They suffice to distinguish configurations.
fn hash(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let first = digest.as_ref().first_chunk().expect("it has 32 bytes");
    format!("{:016x}", u64::from_be_bytes(*first))
}

fn unreadable(name: &str, why: &Unreadable) -> Problems {
    let message = format!("cannot read {}: {}", shown(name), shown(&why.to_string()));
    let report = Report::new(Source::new(name, ""));
    report.give_up(Finding::new(&code::UNREADABLE, 0..0, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_what_sha256sum_begins_with() {
        // The expected hash is the output of `printf '' | sha256sum | cut -c1-16`.
        assert_eq!(hash(""), "e3b0c44298fc1c14");
        let text = "version = 1\nupstream.server = 'http://127.0.0.1:1'\n";
        let hash_of = |text: &str| Config::parse(text, "test").expect("it is right").0.hash;
        assert_eq!(hash_of(text), hash(text));
        assert_ne!(hash_of(text), hash_of(&format!("{text}# a comment\n")));
    }
}
