//! Which path and method mean what.

use http::Method;

use super::Refusal;
use crate::Service;

/// Something that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Goes through the queue.
    Service(Service),
    /// Answered at once, also when the queue is full.
    Stats,
    /// Answered at once.
    Health,
}

/// The route of a request, matched exactly.
pub(super) fn route(method: &Method, path: &str) -> Result<Route, Refusal> {
    let (route, allowed) = match (path, Service::at(path)) {
        (_, Some(service)) => (Route::Service(service), service.method()),
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
        assert_eq!(route(&Method::GET, "/"), Ok(Route::Service(Service::Home)));
        assert_eq!(route(&Method::POST, "/buy"), Ok(Route::Service(Service::Buy)));
        for path in ["/browse/", "//", "/Browse", "/-/", "*", "/books"] {
            assert_eq!(route(&Method::GET, path), Err(Refusal::NoSuchPage), "{path}");
        }
    }

    #[test]
    fn the_wrong_method_is_told_the_right_one() {
        let wrong = |allowed| Err(Refusal::Method { allowed });
        assert_eq!(route(&Method::GET, "/cart"), wrong(Method::POST));
        assert_eq!(route(&Method::POST, "/-/stats"), wrong(Method::GET));
        assert_eq!(route(&Method::HEAD, "/file/1"), wrong(Method::GET));
    }
}
