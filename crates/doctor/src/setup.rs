//! Checks the configuration file and the certificates that it names. The result is a short form of
//! that of `bywash check`.

use std::path::Path;

use bywash_config::{Config, Problems, Severity};
use bywash_terminal::text::escaped;
use bywash_tls::Warning;

use super::finding::Finding;
use crate::certificates::CertificateProblems;

const FILE: &str = "configuration";
const CERTIFICATES: &str = "certificates";

/// The maximum number of messages that are quoted. `bywash check` shows all of them.
const QUOTED: usize = 3;

/// Returns the configuration, `None` if it is not valid, and the finding about the file.
pub(super) fn config(file: &Path) -> (Option<Config>, Finding) {
    match Config::read(file) {
        Ok((config, warnings)) => (Some(config), judge(file, &warnings)),
        Err(problems) => (None, judge(file, &problems)),
    }
}

fn judge(file: &Path, problems: &Problems) -> Finding {
    let name = escaped(&file.display().to_string());
    let errors = problems.count(Severity::Error);
    let warnings = problems.count(Severity::Warning) + problems.more();
    let quoted: Vec<&str> =
        problems.iter().take(QUOTED).map(|problem| problem.message.as_str()).collect();
    let found = format!("{name}: {}", quoted.join("; "));
    let remedy = if file.exists() {
        format!("`bywash check {name}` shows where")
    } else {
        "name the file by --config; `bywash example > bywash.toml` writes a first one".to_owned()
    };
    let finding = match (errors, warnings) {
        (0, 0) => Finding::ok(FILE, format!("{name}: all right")),
        (0, _) => Finding::warning(FILE, found, remedy),
        (_, _) => Finding::problem(FILE, found, remedy),
    };
    finding.with("errors", errors).with("warnings", warnings)
}

pub(super) fn certificates(config: &Config) -> Vec<Finding> {
    let certificate_problems = CertificateProblems::of(config);
    if certificate_problems.is_empty() {
        let found = match &config.tls {
            Some(tls) => format!("{} read, each with its key; none expires soon", pairs(tls)),
            None => "no certificate is served, because [tls] is not set".to_owned(),
        };
        return vec![Finding::ok(CERTIFICATES, found)];
    }
    let errors = certificate_problems.errors.iter().map(|error| {
        let (found, remedy) = split_remedy(&error.to_string());
        Finding::problem(CERTIFICATES, found, remedy)
    });
    errors.chain(certificate_problems.warnings.iter().map(warned)).collect()
}

/// Judges a warning about a certificate. An expired certificate is a problem: the gateway still
/// uses it, but every client rejects it.
fn warned(warning: &Warning) -> Finding {
    let message = warning.to_string();
    let (found, remedy) = split_remedy(&message);
    match warning {
        Warning::Expired { .. } | Warning::NotYetValid { .. } => {
            Finding::problem(CERTIFICATES, found, remedy)
        }
        Warning::ExpiresSoon { .. } | Warning::KeyReadable { .. } => {
            Finding::warning(CERTIFICATES, found, remedy)
        }
        Warning::NotForServers { .. } | Warning::NoNames { .. } => {
            let remedy = "have it reissued for servers, with the host names of the site";
            Finding::warning(CERTIFICATES, message, remedy)
        }
        Warning::Shadowed { .. } => {
            Finding::warning(CERTIFICATES, message, "take one of the two out of [tls]")
        }
    }
}

/// Splits a message of `bywash_tls` into the problem and the remedy, which follows the last `; ` or
/// `: `.
fn split_remedy(message: &str) -> (String, String) {
    let end = message.rfind("; ").max(message.rfind(": "));
    let (found, remedy) = message.split_at(end.unwrap_or(message.len()));
    (found.to_owned(), remedy.trim_start_matches([';', ':', ' ']).to_owned())
}

fn pairs(tls: &bywash_config::Tls) -> String {
    let count = tls.certificates.len();
    format!("{count} certificate{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn what_to_do_is_the_end_of_a_message() {
        let (found, remedy) = split_remedy("the key: it is bad; make another: soon");
        assert_eq!((found.as_str(), remedy.as_str()), ("the key: it is bad; make another", "soon"));
        assert_eq!(split_remedy("that is all"), ("that is all".to_owned(), String::new()));
    }

    #[test]
    fn what_every_client_refuses_is_a_problem() {
        let path = || "a.pem".into();
        let verdict = |warning: &Warning| warned(warning).verdict;
        assert_eq!(verdict(&Warning::Expired { path: path(), days: 3 }), Verdict::Problem);
        assert_eq!(verdict(&Warning::NotYetValid { path: path() }), Verdict::Problem);
        assert_eq!(verdict(&Warning::ExpiresSoon { path: path(), days: 3 }), Verdict::Warning);
        assert_eq!(verdict(&Warning::NoNames { path: path() }), Verdict::Warning);
        let soon = warned(&Warning::ExpiresSoon { path: path(), days: 3 });
        assert_eq!(soon.found, "a.pem expires in 3 days");
        assert_eq!(soon.remedy.as_deref(), Some("renew it"));
    }

    #[test]
    fn a_file_that_is_not_there_is_a_problem_with_a_way_out() {
        let (config, finding) = config(Path::new("/no/such/file.toml"));
        assert!(config.is_none());
        assert_eq!(finding.verdict, Verdict::Problem);
        assert!(finding.remedy.unwrap().contains("bywash example"));
    }
}
