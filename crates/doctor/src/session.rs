//! Checks whether requests have the session cookie, from the status of the running gateway.

use bywash_api::{SessionCookieStatus, Status};
use bywash_terminal::text::escaped;

use super::finding::Finding;

const CHECK: &str = "session cookie";

/// Returns the findings about sessions, and about the classes that are part of a purchase, from a
/// status.
pub(super) fn findings(status: &Status) -> Vec<Finding> {
    let warnings = status.classes.iter().filter_map(|class| {
        let warning = class.warning.as_deref()?;
        let found = format!("class {}: {}", escaped(&class.name), escaped(warning));
        let remedy = "name a class in `requires` that such a session was served, and the cookie of \
                      sessions in identify.session";
        Some(Finding::warning("transactions", found, remedy))
    });
    status.session_cookie.iter().map(cookie).chain(warnings).collect()
}

/// Judges the cookie that identifies sessions.
fn cookie(cookie: &SessionCookieStatus) -> Finding {
    let (answered, carried) = (cookie.answered, cookie.carried);
    let name = cookie.name.as_deref().map(escaped);
    let finding = match (&cookie.warning, name) {
        (Some(warning), _) => {
            let remedy = "set identify.session to the application's session cookie, or to \
                          \"auto\", \"token\" or \"none\"; then reload";
            Finding::warning(CHECK, escaped(warning), remedy)
        }
        (None, None) => {
            let found =
                format!("\"auto\" has picked no cookie in the last {answered} answered requests");
            Finding::unknown(
                CHECK,
                found,
                "run the doctor again later: until then there are no sessions",
            )
        }
        (None, Some(name)) if carried > 0 => {
            let found = format!(
                "{carried} of the last {answered} answered requests had the cookie `{name}`"
            );
            Finding::ok(CHECK, found)
        }
        (None, Some(name)) => {
            let found =
                format!("none of the last {answered} answered requests had the cookie `{name}`");
            Finding::unknown(CHECK, found, "run the doctor again after more requests of visitors")
        }
    };
    finding.with("answered", answered).with("carried", carried)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    fn verdict(name: Option<&str>, carried: u64, warning: Option<&str>) -> Verdict {
        let status = SessionCookieStatus {
            source: "auto".into(),
            name: name.map(str::to_owned),
            answered: 100,
            carried,
            set: Vec::new(),
            warning: warning.map(str::to_owned),
        };
        cookie(&status).verdict
    }

    #[test]
    fn a_cookie_that_no_request_has_is_a_warning() {
        assert_eq!(verdict(Some("sid"), 0, Some("no request had it")), Verdict::Warning);
        assert_eq!(verdict(Some("sid"), 1, None), Verdict::Ok);
        assert_eq!(verdict(Some("sid"), 0, None), Verdict::Unknown);
        assert_eq!(verdict(None, 0, None), Verdict::Unknown);
    }
}
