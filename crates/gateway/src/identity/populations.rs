//! The populations of clients: which clients look alike by the heads of their requests.
//!
//! A head shows the program that sent it: which fields it has, in which order and spelling, and the
//! values of some of them. All new sessions whose requests have the same of these are one
//! population. The engine ranks their first requests by what sessions of the population do
//! ([`bywash_engine::Population`]).
//!
//! A population does not depend on what differs between two requests of one program: cookies, the
//! page that the visitor comes from, conditions, caching, and fields that hops add. It does not
//! depend on numbers in the names of browsers either, because their versions change often, nor on
//! the value of `Sec-CH-UA`: Chrome changes the order of its names with each version. Only the
//! first language counts, without its region. If more counted, visitors would be in populations too
//! small to learn anything about.
//!
//! **Hostile input.** Heads are hashed under a secret, so a client cannot choose the population that
//! it is in, except by sending the same head. The texts for operators are cut, and consist of
//! printable ASCII.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, TryLockError};

use bywash_engine::{AddressKey, PopulationKey, TargetKey, VisitorKey};
use bywash_message::{Field, Fields, Name, Request};

use crate::process::secret::{PartsHasher, Secret};
use crate::telemetry::request_log::protocol;

/// Fields that differ between two requests of one program, or that hops add.
const LEFT_OUT: [&str; 38] = [
    "age",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-language",
    "content-type",
    "cookie",
    "date",
    "expect",
    "forwarded",
    "idempotency-key",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "origin",
    "pragma",
    "priority",
    "purpose",
    "range",
    "referer",
    "sec-fetch-site",
    "sec-purpose",
    "signature",
    "signature-agent",
    "signature-input",
    "traceparent",
    "tracestate",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-real-ip",
    "x-request-id",
    "x-requested-with",
    "x-retry-count",
];

/// Fields whose values count, because a program sends the same value with each page.
const VALUES: [&str; 10] = [
    "accept",
    "accept-encoding",
    "connection",
    "sec-ch-ua-mobile",
    "sec-ch-ua-platform",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-user",
    "te",
    "upgrade-insecure-requests",
];

/// Parameters of a query that say which link a visitor followed: of advertisers and mailing lists.
const OF_LINKS: [&str; 15] = [
    "dclid",
    "fbclid",
    "gad_source",
    "gbraid",
    "gclid",
    "igshid",
    "li_fat_id",
    "mc_cid",
    "mc_eid",
    "msclkid",
    "srsltid",
    "ttclid",
    "twclid",
    "wbraid",
    "yclid",
];
/// The beginning of the names of such parameters.
const OF_CAMPAIGNS: &str = "utm_";

/// The values of `Sec-Fetch-Dest` for pages, and for what a script of a page fetches. A browser says
/// there what it will do with the answer. All other values are for parts of a page.
const NOT_PARTS: [&[u8]; 2] = [b"document", b"empty"];

/// The policy that ranks first requests by populations.
pub(crate) const RANKS_POPULATIONS: &str = "session-first";

/// The maximum number of bytes of the name of a browser that count.
const BROWSER: usize = 160;
/// The maximum number of bytes of the names of fields that operators see.
const FIELDS: usize = 320;
/// The maximum number of populations whose appearance is stored.
const STORED: usize = 1024;

/// Returns the population of the client that sent a request.
pub(crate) fn population(secret: Secret, request: &Request) -> PopulationKey {
    let mut hasher = secret.parts_hasher();
    hasher.part(b"population");
    hasher.part(protocol(request.version).as_bytes());
    for field in shown(request) {
        hasher.part(field.spelled);
        if is_one_of(&VALUES, &field) {
            hasher.part(field.value);
        } else if field.name == Name::UserAgent {
            hash_browser(&mut hasher, Some(field.value));
        } else if field.name == Name::AcceptLanguage {
            hasher.part(first_language(field.value));
        }
    }
    PopulationKey(hasher.finish())
}

/// Returns the key of the client that sent a request: its address and its browser.
pub(crate) fn visitor(secret: Secret, address: AddressKey, request: &Request) -> VisitorKey {
    let mut hasher = secret.parts_hasher();
    hasher.part(b"visitor");
    hasher.part(&address.0.to_ne_bytes());
    hash_browser(&mut hasher, request.fields.get(Name::UserAgent));
    VisitorKey(hasher.finish())
}

/// Returns the key of the target of a request: its host, its path and its query, without the
/// parameters that say which link the visitor followed.
pub(crate) fn target(secret: Secret, request: &Request) -> TargetKey {
    let mut hasher = secret.parts_hasher();
    hasher.part(b"target");
    hasher.part(&request.authority);
    hasher.part(request.target.path().as_bytes());
    let query = request.target.path_and_query().split_once('?').map_or("", |(_, query)| query);
    let is_of_link = |parameter: &&str| {
        let name = parameter.split('=').next().unwrap_or_default();
        // Some applications also split parameters at semicolons.
        let is_one = !parameter.contains(';');
        is_one && (name.starts_with(OF_CAMPAIGNS) || OF_LINKS.contains(&name))
    };
    for parameter in query.split('&').filter(|parameter| !is_of_link(parameter)) {
        hasher.part(parameter.as_bytes());
    }
    TargetKey(hasher.finish())
}

/// Returns whether a browser asks for a part of a page, such as a style sheet, and not for a page.
/// Other programs do not say that.
pub(crate) fn is_part_of_page(fields: &Fields) -> bool {
    fields.all(Name::SecFetchDest).any(|value| !NOT_PARTS.contains(&value))
}

/// Adds the name of a browser to a hash, without its numbers.
fn hash_browser(hasher: &mut PartsHasher, name: Option<&[u8]>) {
    let (text, length) = without_numbers(name.unwrap_or_default());
    hasher.part(&text[..length]);
}

/// Returns the fields of a request that show its program.
fn shown(request: &Request) -> impl Iterator<Item = Field<'_>> {
    request.fields.iter().filter(|field| !is_one_of(&LEFT_OUT, field))
}

fn is_one_of(names: &[&str], field: &Field<'_>) -> bool {
    names.iter().any(|name| field.spelled.eq_ignore_ascii_case(name.as_bytes()))
}

/// Returns the beginning of a text with one `0` in place of each number, and its length.
fn without_numbers(text: &[u8]) -> ([u8; BROWSER], usize) {
    let (mut short, mut length, mut after_digit) = ([0; BROWSER], 0, false);
    // There is no branch for each byte, because each request has such a text.
    for byte in &text[..text.len().min(BROWSER)] {
        let is_digit = byte.is_ascii_digit();
        short[length] = if is_digit { b'0' } else { *byte };
        length += usize::from(!(is_digit && after_digit));
        after_digit = is_digit;
    }
    (short, length)
}

/// Returns the first language of an `Accept-Language` field, without its region.
fn first_language(value: &[u8]) -> &[u8] {
    let end = value.iter().position(|byte| b"-,; ".contains(byte)).unwrap_or(value.len());
    &value[..end.min(8)]
}

/// How the requests of a population look, for operators.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Appearance {
    /// The name of the browser, with `0` in place of each number; empty if the requests name none.
    pub(crate) user_agent: Box<str>,
    /// The first language; empty if the requests name none.
    pub(crate) language: Box<str>,
    pub(crate) protocol: &'static str,
    /// The names of the fields that count, in their order.
    pub(crate) fields: Box<str>,
}

impl Appearance {
    fn of(request: &Request) -> Self {
        let value = |name| request.fields.get(name).unwrap_or_default();
        let (browser, length) = without_numbers(value(Name::UserAgent));
        let names: Vec<&[u8]> = shown(request).map(|field| field.spelled).collect();
        Self {
            user_agent: printable(browser[..length].iter().copied()),
            language: printable(first_language(value(Name::AcceptLanguage)).iter().copied()),
            protocol: protocol(request.version),
            fields: printable(names.join(&b", "[..]).into_iter().take(FIELDS)),
        }
    }
}

/// Returns a text with `?` in place of each byte that is not printable ASCII.
fn printable(bytes: impl Iterator<Item = u8>) -> Box<str> {
    let shown = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let text: String = bytes.map(|byte| if shown(byte) { char::from(byte) } else { '?' }).collect();
    text.into()
}

/// How the requests of populations look. A full table gives up any of them; the population gets
/// its place back with its next first request.
#[derive(Default)]
pub(crate) struct Appearances(Mutex<HashMap<PopulationKey, Appearance>>);

impl Appearances {
    /// Stores how a request of a population looks, unless that is known. Does nothing if another
    /// thread holds the lock.
    pub(crate) fn note(&self, key: PopulationKey, request: &Request) {
        let mut table = match self.0.try_lock() {
            Ok(table) => table,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if table.contains_key(&key) {
            return;
        }
        if table.len() >= STORED
            && let Some(any) = table.keys().next().copied()
        {
            table.remove(&any);
        }
        table.insert(key, Appearance::of(request));
    }

    /// Returns how requests of a population look; `None` if that is not known.
    pub(crate) fn of(&self, key: PopulationKey) -> Option<Appearance> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }
}

#[cfg(test)]
mod tests {
    use bywash_message::Limits;

    use super::*;

    const SECRET: Secret = Secret(1, 2);

    fn request(fields: &str) -> Request {
        let head = format!("GET /wiki HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n");
        let limits = Limits { target: 8192, fields: 100, bytes: 16_384 };
        Request::parse(head.as_bytes(), &limits).unwrap()
    }

    fn key(fields: &str) -> PopulationKey {
        population(SECRET, &request(fields))
    }

    const FIREFOX: &str = "User-Agent: Mozilla/5.0 (X11; rv:140.0) Firefox/140.0\r\n\
                           Accept: text/html\r\nAccept-Language: de-DE,de;q=0.8\r\n\
                           Sec-Fetch-Dest: document\r\n";

    #[test]
    fn requests_of_one_program_are_one_population() {
        for other in [
            FIREFOX.replace("140.0", "141.12"),
            FIREFOX.replace("de-DE,de;q=0.8", "de-AT,de;q=0.7,en;q=0.3"),
            format!("Cookie: a=b\r\nCookie: c=d\r\n{FIREFOX}Referer: https://b.example/\r\n"),
            format!("X-Forwarded-For: 192.0.2.1\r\n{FIREFOX}If-None-Match: \"a\"\r\n"),
            format!("{FIREFOX}Cache-Control: max-age=0\r\nsec-fetch-site: none\r\n"),
        ] {
            assert_eq!(key(&other), key(FIREFOX), "{other}");
        }
    }

    #[test]
    fn requests_of_other_programs_are_other_populations() {
        for other in [
            FIREFOX.replace("Firefox", "Chrome"),
            FIREFOX.replace("text/html", "*/*"),
            FIREFOX.replace("de-DE", "en-US"),
            FIREFOX.replace("Accept:", "accept:"),
            FIREFOX.replace("document", "image"),
            FIREFOX.replace("Sec-Fetch-Dest: document\r\n", ""),
            format!("Sec-Fetch-User: ?1\r\n{FIREFOX}"),
            format!("{FIREFOX}Sec-Fetch-User: ?1\r\n"),
            String::new(),
        ] {
            assert_ne!(key(&other), key(FIREFOX), "{other}");
        }
        let secret = Secret(1, 3);
        assert_ne!(population(secret, &request(FIREFOX)), key(FIREFOX), "it is a keyed hash");
    }

    #[test]
    fn a_visitor_is_an_address_and_a_browser() {
        let of = |address, fields: &str| visitor(SECRET, AddressKey(address), &request(fields));
        let path = FIREFOX.replace("text/html", "image/png");
        assert_eq!(of(1, FIREFOX), of(1, &path));
        assert_ne!(of(1, FIREFOX), of(2, FIREFOX));
        assert_eq!(
            of(1, FIREFOX),
            of(1, &FIREFOX.replace("140", "141")),
            "it cannot be many clients"
        );
        assert_ne!(of(1, FIREFOX), of(1, &FIREFOX.replace("Firefox", "Chrome")));
    }

    #[test]
    fn a_browser_says_that_it_asks_for_a_part_of_a_page() {
        let is_part = |fields: &str| is_part_of_page(&request(fields).fields);
        for part in ["style", "image", "iframe", "report"] {
            assert!(is_part(&format!("sec-fetch-dest: {part}\r\n")));
        }
        assert!(!is_part(FIREFOX) && !is_part("Sec-Fetch-Dest: empty\r\n") && !is_part(""));
    }

    #[test]
    fn a_target_does_not_depend_on_the_link_that_a_visitor_followed() {
        let of = |target: &str, host: &str| {
            let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let limits = Limits { target: 8192, fields: 100, bytes: 16_384 };
            super::target(SECRET, &Request::parse(head.as_bytes(), &limits).unwrap())
        };
        let page = of("/a?id=1", "a");
        assert_eq!(of("/a?utm_source=x&id=1&fbclid=y", "a"), page);
        assert_ne!(of("/a?id=1&utm_source=x;id=2", "a"), page);
        for (other, host) in [("/a", "a"), ("/a?id=2", "a"), ("/b?id=1", "a"), ("/a?id=1", "b")] {
            assert_ne!(of(other, host), page, "{other} {host}");
        }
    }

    #[test]
    fn operators_see_short_printable_texts() {
        let long = "9a".repeat(4000);
        let head = format!("User-Agent: x\u{9b}1{long}\r\nAccept-Language: \u{e9}\u{e9}\r\n");
        let Appearance { user_agent, language, protocol, fields } = Appearance::of(&request(&head));
        assert!(user_agent.starts_with("x??0a0a") && user_agent.len() < BROWSER);
        assert_eq!((&*language, protocol), ("????", "HTTP/1.1"));
        assert_eq!(&*fields, "Host, User-Agent, Accept-Language");
    }

    #[test]
    fn the_table_of_appearances_is_bounded() {
        let all = Appearances::default();
        for key in 0..2 * STORED as u64 {
            all.note(PopulationKey(key), &request(FIREFOX));
        }
        assert_eq!(all.0.lock().unwrap().len(), STORED);
        assert!(all.of(PopulationKey(2 * STORED as u64 - 1)).is_some());
        assert_eq!(all.of(PopulationKey(u64::MAX)), None);
    }
}
