//! Answers `/v1/lab`: results of the laboratory, from the folder that the configuration names.
//!
//! The folder may be on a disk that does not answer, so another thread reads it.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use bywash_api::{Code, LabResult, LabResults};
use bywash_files::Unreadable;
use http::StatusCode;

use super::answer::{Answered, Refused, document, text};
use crate::shared::Shared;

/// The maximum number of results that are listed: the latest ones.
const MOST: usize = 200;
/// The maximum number of directory entries that are examined to list the results.
const LOOKED: usize = 10_000;
/// The maximum size of a result in bytes: more than a comparison of many policies over a day needs.
const LARGEST: usize = 8 << 20;
const ENDING: &str = ".json";

pub(super) async fn list(shared: &Shared) -> Answered {
    let Some(folder) = folder(shared) else { return Ok(document(&LabResults::default())) };
    let shown = folder.display().to_string();
    let found = run_blocking(move || found(&folder)).await?;
    Ok(document(&match found {
        Ok(results) => LabResults { folder: Some(shown), trouble: None, results },
        Err(error) => LabResults {
            folder: Some(shown),
            trouble: Some(error.to_string()),
            results: Vec::new(),
        },
    }))
}

pub(super) async fn show(shared: &Shared, name: &str) -> Answered {
    let none = || Refused::not_found("no result has this name: /v1/lab lists them all");
    let folder = folder(shared).filter(|_| is_name(name)).ok_or_else(none)?;
    let path = folder.join(name);
    let read = run_blocking(move || bywash_files::text(&path, LARGEST)).await?;
    let words = read.map_err(|why| match why {
        Unreadable::TooLarge(_) => Refused::new(Code::TooLarge, why),
        why => Refused::not_found(why),
    })?;
    // The answer declares the text as JSON, so check that it is.
    if serde_json::from_str::<serde::de::IgnoredAny>(&words).is_err() {
        return Err(Refused::invalid("the file is not valid JSON"));
    }
    Ok(text(StatusCode::OK, "application/json", words))
}

fn folder(shared: &Shared) -> Option<PathBuf> {
    shared.settings().config.results.clone()
}

async fn run_blocking<T: Send + 'static>(
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refused> {
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|_| Refused::new(Code::Unavailable, "the folder of results cannot be read"))
}

fn found(folder: &Path) -> std::io::Result<Vec<LabResult>> {
    let mut results = Vec::new();
    for entry in std::fs::read_dir(folder)?.take(LOOKED) {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(about) = entry.metadata() else { continue };
        if !is_name(&name) || !about.is_file() {
            continue;
        }
        let written = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let written_ms = written.map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or(0));
        results.push(LabResult { name, bytes: about.len(), written_ms });
    }
    results.sort_by(|a, b| b.written_ms.cmp(&a.written_ms).then_with(|| a.name.cmp(&b.name)));
    results.truncate(MOST);
    Ok(results)
}

/// Returns whether `name` can only name a JSON file directly in the folder.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.len() <= 100 && name.ends_with(ENDING) && !name.starts_with('.') && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        assert!(is_name("seed-1.2.json"));
        for name in
            ["../x.json", "/etc/x.json", ".json", ".x.json", "x.txt", "a b.json", "x%2f.json"]
        {
            assert!(!is_name(name), "{name}");
        }
    }
}
