//! Builds the HTTP requests of visitors' attempts.

use bytes::Bytes;
use bywash_scenario::{Attempt, Scenario, Shown, Signal, Stream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;

use crate::cookie_jar::CookieJar;
use crate::error::LoadError;
use crate::form::FormTemplate;
use crate::head::Head;
use crate::options::Options;
use crate::path_template::PathTemplate;
use crate::target::Target;

/// The name of the header that tells an emulated shop how long the request should occupy a worker,
/// in whole microseconds. With it, two shops that receive the visitors of the same seed do exactly
/// the same work.
pub const DEMAND_HEADER: &str = "shop-demand-us";

/// The name of the header that identifies the visitor to the shop. It is sent only if the run has a
/// tag.
pub const ORDER_TAG_HEADER: &str = "shop-order-tag";

/// The name of the header that marks a retry. It is sent only if the scenario's clients declare
/// retries.
const RETRY_HEADER: &str = "x-retry-attempt";

/// An HTTP request whose body is a form or empty.
pub(crate) type HttpRequest = Request<Full<Bytes>>;

/// The requests of a scenario's classes. All requests are checked once, before the run, so that
/// none can be invalid during it.
#[derive(Debug)]
pub(crate) struct Requests {
    classes: Vec<Template>,
    signals: Vec<SentSignal>,
    heads: Vec<Head>,
    keep_cookies: f64,
    tag: Option<String>,
    seed: u64,
}

/// A signal in the form in which it is sent.
#[derive(Debug)]
enum SentSignal {
    Cookie(String, String),
    Header(HeaderName, HeaderValue),
}

/// The names, in lower case, of headers that determine a request's meaning, owner or end. No signal
/// may use them.
const RESERVED: [&str; 14] = [
    "host",
    "user-agent",
    "cookie",
    DEMAND_HEADER,
    ORDER_TAG_HEADER,
    RETRY_HEADER,
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "expect",
];

#[derive(Debug)]
struct Template {
    method: Method,
    path: PathTemplate,
    form: FormTemplate,
    headers: HeaderMap,
}

impl Requests {
    pub(crate) fn new(
        scenario: &Scenario,
        options: &Options,
        target: &Target,
    ) -> Result<Self, LoadError> {
        let is_plain = options.heads.is_empty();
        let classes = scenario.classes.iter().map(|class| {
            template(&class.method, &class.path, &class.form, target, is_plain).ok_or_else(|| {
                LoadError::Request {
                    class: class.name.clone(),
                    request: format!("{} {}", class.method, class.path),
                }
            })
        });
        Ok(Self {
            classes: classes.collect::<Result<_, _>>()?,
            signals: scenario.signals.iter().map(sent_signal).collect::<Result<_, _>>()?,
            heads: options.heads.clone(),
            keep_cookies: options.keep_cookies,
            tag: options.tag.as_deref().map(checked_tag).transpose()?,
            seed: options.seed,
        })
    }

    /// Returns the headers that the `index`-th visitor adds to each request: the run's tag, if it
    /// has one, and the headers of those signals whose indices are in `signals`.
    pub(crate) fn extra_headers(&self, index: u64, signals: &[usize]) -> HeaderMap {
        let mut extra_headers = HeaderMap::new();
        if let Some(tag) = &self.tag {
            // The tag has only letters, digits, `-` and `_`, as `checked_tag` ensures.
            let tag = HeaderValue::try_from(format!("{tag}-{}-{index}", self.seed)).ok();
            extra_headers.extend(tag.map(|tag| (HeaderName::from_static(ORDER_TAG_HEADER), tag)));
        }
        for signal in signals {
            if let SentSignal::Header(name, value) = &self.signals[*signal] {
                extra_headers.insert(name, value.clone());
            }
        }
        extra_headers
    }

    /// Returns the cookie jar of a visitor. It contains the cookies of those signals whose indices
    /// are in `signals`.
    pub(crate) fn jar(&self, signals: &[usize]) -> CookieJar {
        let mut jar = CookieJar::default();
        for signal in signals {
            if let SentSignal::Cookie(name, value) = &self.signals[*signal] {
                jar.insert(name, value);
            }
        }
        jar
    }

    /// Returns the path of a request of `class`, with random numbers for its placeholders. The
    /// numbers are drawn from `chance`.
    pub(crate) fn path(&self, class: usize, chance: &mut Stream) -> Uri {
        self.classes[class].path.draw(chance)
    }

    /// Returns the head of a visitor of population `shape`, and whether the visitor keeps cookies.
    pub(crate) fn head(&self, shape: u32, mut chance: Stream) -> (Option<Head>, bool) {
        (self.heads.get(shape as usize).copied(), chance.unit() < self.keep_cookies)
    }

    /// Returns the header fields with which the request of `attempt` begins, whatever the visitor.
    pub(crate) fn headers(&self, attempt: &Attempt) -> HeaderMap {
        self.classes[attempt.class].headers.clone()
    }

    /// Returns the HTTP request of `attempt` for `path`, with `headers` and the visitor's cookies.
    pub(crate) fn build(
        &self,
        attempt: &Attempt,
        path: Uri,
        jar: &CookieJar,
        mut headers: HeaderMap,
    ) -> HttpRequest {
        let template = &self.classes[attempt.class];
        let mut request = Request::new(Full::new(template.form.fill(jar)));
        *request.method_mut() = template.method.clone();
        *request.uri_mut() = path;
        headers.insert(DEMAND_HEADER, attempt.demand.as_micros().into());
        if attempt.declared {
            headers.insert(RETRY_HEADER, HeaderValue::from_static("1"));
        }
        jar.write_to(&mut headers);
        *request.headers_mut() = headers;
        request
    }
}

/// Returns the template of a class. `is_plain` says whether all visitors have the same plain head.
fn template(
    method: &str,
    path: &str,
    form: &str,
    target: &Target,
    is_plain: bool,
) -> Option<Template> {
    let method = Method::from_bytes(method.as_bytes()).ok()?;
    let path = PathTemplate::parse(path)?;
    let form = FormTemplate::parse(form);
    let mut headers = HeaderMap::new();
    headers.insert(HOST, target.host.clone());
    if is_plain {
        headers.insert(USER_AGENT, HeaderValue::from_static("bywash-load"));
    }
    // RFC 9110 §8.6: a method that could have content declares that the request has none.
    if !form.is_empty() {
        const FORM: &str = "application/x-www-form-urlencoded";
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORM));
    } else if matches!(method, Method::POST | Method::PUT | Method::PATCH) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    // CONNECT is not supported, because it has no path and its answer has no end.
    (method != Method::CONNECT).then_some(Template { method, path, form, headers })
}

fn sent_signal(signal: &Signal) -> Result<SentSignal, LoadError> {
    match &signal.shown {
        Shown::Cookie { name, value } => Ok(SentSignal::Cookie(name.clone(), value.clone())),
        Shown::Header { name, value } => {
            let pair = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            match pair.filter(|(name, _)| !RESERVED.contains(&name.as_str())) {
                Some((name, value)) => Ok(SentSignal::Header(name, value)),
                None => {
                    Err(LoadError::Signal { signal: signal.name.clone(), header: name.clone() })
                }
            }
        }
    }
}

fn checked_tag(tag: &str) -> Result<String, LoadError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=Options::LONGEST_TAG).contains(&tag.len()) && tag.chars().all(plain) {
        Ok(tag.into())
    } else {
        Err(LoadError::Tag(tag.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target {
            address: ([127, 0, 0, 1], 80).into(),
            host: HeaderValue::from_static("127.0.0.1:80"),
        }
    }

    #[test]
    fn a_tag_that_a_shop_would_refuse_is_refused_here() {
        assert!(checked_tag("demo_A-1").is_ok());
        for tag in ["", "a b", "ä", "a-tag-of-23-characters--"] {
            assert!(checked_tag(tag).is_err(), "{tag:?}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert!(template("GET", "/a?b=c", "", &target(), true).is_some());
        for (method, path) in
            [("GET", "a"), ("GET", "http://x/"), ("G T", "/"), ("GET", "/a b"), ("CONNECT", "/")]
        {
            assert!(template(method, path, "", &target(), true).is_none(), "{method} {path}");
        }
    }

    #[test]
    fn a_post_says_that_it_is_empty_and_a_get_does_not() {
        let has = |method| {
            let template = template(method, "/", "", &target(), true).unwrap();
            template.headers.contains_key(CONTENT_LENGTH)
        };
        assert!(has("POST") && !has("GET"));
    }
}
