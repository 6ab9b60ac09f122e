//! Which path and method mean what.

use http::Method;

use super::Refusal;
use crate::Stage;

/// Something the shop serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Goes through the queue.
    Stage(Stage),
    /// Answered at once, also when the queue is full.
    Stats,
    /// Answered at once.
    Health,
}

/// The route of a request, matched exactly.
pub(super) fn route(method: &Method, path: &str) -> Result<Route, Refusal> {
    let (route, allowed) = match (path, Stage::at(path)) {
        (_, Some(stage)) => (Route::Stage(stage), stage.method()),
        ("/-/stats", _) => (Route::Stats, Method::GET),
        ("/-/health", _) => (Route::Health, Method::GET),
        _ => return Err(Refusal::NoSuchPage),
    };
    if *method == allowed { Ok(route) } else { Err(Refusal::Method { allowed }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_exactly() {
        assert_eq!(route(&Method::GET, "/"), Ok(Route::Stage(Stage::Main)));
        assert_eq!(route(&Method::POST, "/confirm"), Ok(Route::Stage(Stage::Confirm)));
        assert_eq!(route(&Method::GET, "/-/stats"), Ok(Route::Stats));
        for path in ["/browse/", "//", "/Browse", "/-/", "*"] {
            assert_eq!(route(&Method::GET, path), Err(Refusal::NoSuchPage), "{path}");
        }
    }

    #[test]
    fn the_wrong_method_is_told_the_right_one() {
        let wrong = |allowed| Err(Refusal::Method { allowed });
        assert_eq!(route(&Method::GET, "/confirm"), wrong(Method::POST));
        assert_eq!(route(&Method::POST, "/-/stats"), wrong(Method::GET));
        assert_eq!(route(&Method::HEAD, "/"), wrong(Method::GET));
    }
}
