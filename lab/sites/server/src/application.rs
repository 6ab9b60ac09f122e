//! Maps requests to pages, refuses requests without a page, and serves the two pages that every
//! application has.

use std::future::Future;

use bytes::Bytes;
use http::header::ALLOW;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::Serialize;

use crate::body::{BodyError, read};
use crate::respond::{Body, JSON, TEXT, add, respond, text};

/// An application behind a [`Listener`](crate::Listener).
///
/// In addition to its own pages, it serves its statistics as JSON at `/-/stats`, and its health at
/// `/-/health`. Requests for these two pages are answered at once, without waiting in the queue.
pub trait Application: Send + Sync + 'static {
    /// The application's own identifier of a page.
    type Page: Send;

    /// Returns the page whose path is exactly `path`, with the method that the page allows. Returns
    /// `None` if there is no such page.
    fn page(path: &str) -> Option<(Self::Page, Method)>;

    /// Returns all pages at `path`, each with the method that it allows. An application that has
    /// several pages at one path, one for each method, overrides this function.
    fn pages(path: &str) -> Vec<(Self::Page, Method)> {
        Self::page(path).into_iter().collect()
    }

    /// Answers a request for `page`. If the client leaves, the returned future is dropped before it
    /// is complete.
    fn handle(
        &self,
        page: Self::Page,
        head: Parts,
        body: Bytes,
    ) -> impl Future<Output = Result<Response<Body>, Refusal>> + Send;

    /// Returns the application's statistics, as served at `/-/stats`.
    fn stats(&self) -> impl Serialize;
}

/// The reason why a request is refused without work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No page has the path.
    NoSuchPage,
    /// The page does not allow the request's method.
    Method {
        /// The methods that the page allows.
        allowed: Vec<Method>,
    },
    /// The parameters are invalid. The text explains the reason in one line to the person who sent
    /// the request.
    Invalid(&'static str),
    /// The body cannot be used.
    Body(BodyError),
    /// The queue is full, or closed because the application ends.
    Busy,
    /// The application closed before the request was answered.
    Closing,
}

enum Route<P> {
    Page(P),
    Stats,
    Health,
}

pub(crate) async fn answer<A: Application>(
    application: &A,
    request: Request<Incoming>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let answered = match route::<A>(&head.method, head.uri.path()) {
        Ok(Route::Page(page)) => match read(body).await {
            Ok(body) => application.handle(page, head, body).await,
            Err(error) => Err(Refusal::Body(error)),
        },
        Ok(Route::Stats) => Ok(stats(&application.stats())),
        Ok(Route::Health) => Ok(text(StatusCode::OK, "ok")),
        Err(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(|refusal| refused(&refusal))
}

fn route<A: Application>(method: &Method, path: &str) -> Result<Route<A::Page>, Refusal> {
    let own = |route| vec![(route, Method::GET)];
    let pages = A::pages(path);
    let mut routes: Vec<_> = match path {
        _ if !pages.is_empty() => {
            pages.into_iter().map(|(page, on)| (Route::Page(page), on)).collect()
        }
        "/-/stats" => own(Route::Stats),
        "/-/health" => own(Route::Health),
        _ => return Err(Refusal::NoSuchPage),
    };
    match routes.iter().position(|(_, allowed)| allowed == method) {
        Some(wanted) => Ok(routes.swap_remove(wanted).0),
        None => Err(Refusal::Method { allowed: routes.into_iter().map(|(_, own)| own).collect() }),
    }
}

fn stats(stats: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(stats) {
        Ok(json) => respond(StatusCode::OK, JSON, json),
        Err(error) => respond(StatusCode::INTERNAL_SERVER_ERROR, TEXT, error.to_string()),
    }
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let mut response = text(refusal.status(), refusal.words());
    if let Refusal::Method { allowed } = refusal {
        let allowed: Vec<_> = allowed.iter().map(Method::as_str).collect();
        add(&mut response, ALLOW, &allowed.join(", "));
    }
    response
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPage => StatusCode::NOT_FOUND,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Body(error) => error.status(),
            Self::Busy | Self::Closing => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns a line that explains the refusal to the person who sent the request.
    fn words(&self) -> &'static str {
        match self {
            Self::NoSuchPage => "no such page",
            Self::Method { .. } => "this page needs another method",
            Self::Invalid(words) => words,
            Self::Body(error) => error.words(),
            Self::Busy => "too many requests are waiting",
            Self::Closing => "the application is closing",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Application for Nothing {
        type Page = ();

        fn page(path: &str) -> Option<((), Method)> {
            (path == "/buy").then_some(((), Method::POST))
        }

        fn pages(path: &str) -> Vec<((), Method)> {
            match path {
                "/both" => vec![((), Method::GET), ((), Method::POST)],
                _ => Self::page(path).into_iter().collect(),
            }
        }

        async fn handle(&self, (): (), _: Parts, _: Bytes) -> Result<Response<Body>, Refusal> {
            Err(Refusal::Busy)
        }

        fn stats(&self) -> impl Serialize {
            7
        }
    }

    fn refusal(method: &Method, path: &str) -> Option<Refusal> {
        route::<Nothing>(method, path).err()
    }

    #[test]
    fn paths_are_matched_exactly() {
        for path in ["/-/stats", "/-/health"] {
            assert_eq!(refusal(&Method::GET, path), None);
        }
        assert_eq!(refusal(&Method::POST, "/buy"), None);
        for path in ["/", "/buy/", "//buy", "/Buy", "/-/", "*"] {
            assert_eq!(refusal(&Method::GET, path), Some(Refusal::NoSuchPage), "{path}");
        }
    }

    #[test]
    fn the_wrong_method_is_told_the_right_one() {
        let wrong = |allowed| Some(Refusal::Method { allowed: vec![allowed] });
        assert_eq!(refusal(&Method::GET, "/buy"), wrong(Method::POST));
        assert_eq!(refusal(&Method::POST, "/-/stats"), wrong(Method::GET));
        assert_eq!(refusal(&Method::HEAD, "/-/health"), wrong(Method::GET));
        for method in [Method::GET, Method::POST] {
            assert_eq!(refusal(&method, "/both"), None);
        }
        let both = Refusal::Method { allowed: vec![Method::GET, Method::POST] };
        assert_eq!(refusal(&Method::DELETE, "/both"), Some(both));
    }
}
