//! Checks whether requests have the session cookie, by the status of the running gateway.

use bywash_api::SessionCookieStatus;
use bywash_terminal::text::escaped;
use serde::Deserialize;
use serde_json::Value;

use super::finding::Finding;

const CHECK: &str = "session cookie";

/// Judges the sessions and the classes of purchases in a status.
pub(super) fn findings(status: &Value) -> Vec<Finding> {
    let classes = status["classes"].as_array().into_iter().flatten();
    let warnings = classes.filter_map(|class| {
        let (name, warning) = (class["name"].as_str()?, class["warning"].as_str()?);
        let found = format!("class {}: {}", escaped(name), escaped(warning));
        let remedy = "name a class in `after` that such a session was served, and the cookie of sessions in identify.session";
        Some(Finding::warning("transactions", found, remedy))
    });
    cookie(&status["session_cookie"]).into_iter().chain(warnings).collect()
}

/// Judges the `session_cookie` of a status. Returns `None` if sessions are not identified by a
/// cookie of the application.
fn cookie(status: &Value) -> Option<Finding> {
    let cookie = SessionCookieStatus::deserialize(status).ok()?;
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
    Some(finding.with("answered", answered).with("carried", carried))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::finding::Verdict;
    use super::*;

    fn verdict(name: Option<&str>, carried: u64, warning: Option<&str>) -> Verdict {
        let status = json!({
            "source": "auto", "name": name, "answered": 100, "carried": carried, "set": [],
            "warning": warning,
        });
        cookie(&status).unwrap().verdict
    }

    #[test]
    fn a_cookie_that_no_request_has_is_a_warning() {
        assert_eq!(verdict(Some("sid"), 0, Some("no request had it")), Verdict::Warning);
        assert_eq!(verdict(Some("sid"), 1, None), Verdict::Ok);
        assert_eq!(verdict(Some("sid"), 0, None), Verdict::Unknown);
        assert_eq!(verdict(None, 0, None), Verdict::Unknown);
        assert!(cookie(&Value::Null).is_none());
    }
}
