//! Parses the head and the body of a request, before the request may enter the queue.
//!
//! Everything that a client sends is bounded and checked here, so that later code has only typed
//! values.

use bywash_lease::RequestId;
use bywash_site::{Form, Refusal, Sid};

use crate::Service;
use crate::files::FILES;
use crate::request_id::named;

const WORDS: Refusal = Refusal::Invalid("q must be 1 to 100 characters without control characters");
const NUMBER: Refusal = Refusal::Invalid("id must be the number of a book");

/// The maximum length of the text of a search, in characters.
const MAX_WORDS: usize = 100;

/// A parsed request, which may enter the queue.
#[derive(Debug)]
pub(crate) enum ParsedRequest {
    /// A request for the file with this number, which does not need the database.
    File(u32),
    /// A request that needs the database.
    Store(StoreRequest),
}

/// A request that a worker serves with the database.
#[derive(Debug)]
pub(crate) struct StoreRequest {
    pub(crate) operation: Operation,
    /// The session that the client claims to have. Whether the session exists is checked in the
    /// database.
    pub(crate) sid: Option<Sid>,
    /// The request's identifier from its header; `None` if it has none.
    pub(crate) id: Option<RequestId>,
}

/// The operation that a request performs on the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Home,
    Search(String),
    Browse(Option<String>),
    Select(i64),
    Cart(i64),
    Buy,
}

impl Operation {
    /// Returns whether the operation changes nothing, so that it may be stopped at any time. An
    /// operation that writes is never stopped.
    pub(crate) const fn only_reads(&self) -> bool {
        match self {
            Self::Home | Self::Search(_) | Self::Browse(_) | Self::Select(_) => true,
            Self::Cart(_) | Self::Buy => false,
        }
    }
}

impl ParsedRequest {
    pub(crate) fn read(
        service: Service,
        head: &http::request::Parts,
        body: &[u8],
    ) -> Result<Self, Refusal> {
        let form = Form::read(head.uri.query().unwrap_or_default(), body);
        let operation = match service {
            Service::Home => Operation::Home,
            Service::Search => Operation::Search(words(form.get("q"))?),
            Service::Browse => Operation::Browse(form.get("category").map(str::to_owned)),
            Service::Select => Operation::Select(number(form.get("id"))?),
            Service::Cart => Operation::Cart(number(form.get("id"))?),
            Service::Buy => Operation::Buy,
            Service::File => return file(head.uri.path()).map(Self::File),
        };
        let (sid, id) = (Sid::of(&head.headers), named(&head.headers));
        Ok(Self::Store(StoreRequest { operation, sid, id }))
    }
}

/// Parses the text of a search, at most 100 characters. Control characters are refused: no page has
/// them, and PostgreSQL does not accept a zero byte.
fn words(text: Option<&str>) -> Result<String, Refusal> {
    let text = text.map(str::trim).unwrap_or_default();
    let fits = (1..=MAX_WORDS).contains(&text.chars().count());
    let is_plain = !text.chars().any(char::is_control);
    if fits && is_plain { Ok(text.to_owned()) } else { Err(WORDS) }
}

/// Parses the number of a book in digits. The database checks whether there is such a book.
fn number(text: Option<&str>) -> Result<i64, Refusal> {
    let text = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok()).ok_or(NUMBER)
}

fn file(path: &str) -> Result<u32, Refusal> {
    let number = path.strip_prefix(Service::File.path()).and_then(|text| text.parse().ok());
    number.filter(|number| (1..=FILES).contains(number)).ok_or(Refusal::NoSuchPage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(service: Service, target: &str, body: &str) -> Result<ParsedRequest, Refusal> {
        let head = http::Request::builder().uri(target).body(()).unwrap().into_parts().0;
        ParsedRequest::read(service, &head, body.as_bytes())
    }

    fn operation(service: Service, target: &str, body: &str) -> Result<Operation, Refusal> {
        parse(service, target, body).map(|request| match request {
            ParsedRequest::Store(request) => request.operation,
            ParsedRequest::File(number) => panic!("file {number}"),
        })
    }

    #[test]
    fn a_search_is_of_something() {
        let search = |target: &str| operation(Service::Search, target, "");
        assert_eq!(
            search("/search?q=%20Harbour+x%20"),
            Ok(Operation::Search("Harbour x".to_owned()))
        );
        let long = format!("/search?q={}", "x".repeat(101));
        for wrong in ["/search", "/search?q=", "/search?q=+", "/search?q=a%00b", &long] {
            assert_eq!(search(wrong), Err(WORDS), "{wrong}");
        }
    }

    #[test]
    fn a_book_has_a_number_from_the_query_or_the_form() {
        assert_eq!(operation(Service::Select, "/book?id=7", ""), Ok(Operation::Select(7)));
        assert_eq!(operation(Service::Cart, "/cart", "id=8"), Ok(Operation::Cart(8)));
        for wrong in
            ["/book", "/book?id=", "/book?id=-1", "/book?id=1e3", "/book?id=99999999999999999999"]
        {
            assert_eq!(operation(Service::Select, wrong, ""), Err(NUMBER), "{wrong}");
        }
    }

    #[test]
    fn files_are_numbered_from_one() {
        assert!(matches!(parse(Service::File, "/file/1", ""), Ok(ParsedRequest::File(1))));
        for wrong in ["/file/", "/file/0", "/file/8619", "/file/../etc/passwd", "/file/1/2"] {
            let refused = parse(Service::File, wrong, "").expect_err(wrong);
            assert_eq!(refused, Refusal::NoSuchPage);
        }
    }
}
