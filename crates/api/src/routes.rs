//! The table of all operations of the admin listener. The `OpenAPI` document is generated from it,
//! and tests compare the gateway's responses with it.

use bywash_history::Columns;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::{
    Answers, Ask, Audit, Decision, Elephant, Elephants, Evidence, Explained, Exported, Kinds,
    LabResults, Policy, Preview, Previewed, Proof, Request, Requests, Sessions, SetBypass,
    SetClass, Status, Undo, Use,
};

/// The callers that may use an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Any client that reaches the listener.
    Anybody,
    /// Clients with a token, and clients of the unix socket.
    Operator,
    /// The same clients, except those whose token is read-only.
    Decider,
}

/// The content of a body.
#[derive(Clone, Copy)]
pub enum Body {
    /// One JSON document.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// A JSON document on each line, until the client closes the connection.
    Lines(fn(&mut SchemaGenerator) -> Schema),
    /// Server-sent events.
    Events,
    /// Another format, with this media type.
    Other(&'static str),
}

/// An operation of the API.
#[derive(Clone, Copy)]
pub struct Route {
    /// The method: `GET` (which includes `HEAD`) or `POST`.
    pub method: &'static str,
    /// The path; a part in braces is a parameter.
    pub path: &'static str,
    /// The callers that may use it.
    pub access: Access,
    /// The purpose of the operation.
    pub about: &'static str,
    /// The parameters of the query: name and description.
    pub query: &'static [(&'static str, &'static str)],
    /// The body of the request.
    pub sends: Option<Body>,
    /// The body of the response with status 200.
    pub gets: Body,
    /// The other statuses, each with a problem as its body.
    pub problems: &'static [u16],
}

const fn get(path: &'static str, gets: Body, about: &'static str) -> Route {
    Route {
        method: "GET",
        path,
        access: Access::Operator,
        about,
        query: &[],
        sends: None,
        gets,
        problems: &[401, 403],
    }
}

const fn post(path: &'static str, sends: Body, gets: Body, about: &'static str) -> Route {
    Route {
        method: "POST",
        path,
        access: Access::Decider,
        about,
        query: &[],
        sends: Some(sends),
        gets,
        problems: &[400, 401, 403, 404, 409, 503],
    }
}

impl Route {
    const fn open(self) -> Self {
        Self { access: Access::Anybody, problems: &[403], ..self }
    }

    const fn query(self, query: &'static [(&'static str, &'static str)]) -> Self {
        Self { query, problems: &[400, 401, 403], ..self }
    }

    const fn named(self) -> Self {
        Self { problems: &[400, 401, 403, 404], ..self }
    }
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const TEXT: Body = Body::Other("text/plain");
const DECIDED: Body = Body::Json(of::<Elephant>);
const DECISION: Body = Body::Json(of::<Decision>);
const POLICY: Body = Body::Json(of::<Policy>);

/// The filters of `/v1/requests` and `/v1/tap`: a request matches all that are given.
const FILTERS: &[(&str, &str)] = &[
    ("class", "Name of the class"),
    ("level", "Name of the level"),
    ("outcome", "What became of it"),
    ("decision", "run, shed, stop or wait"),
    ("reason", "Why"),
    ("status", "Of its answer"),
    ("session", "Its session, as it is shown"),
    ("standing", "What its session had proven"),
    ("client", "Address of its client"),
    ("rule", "Number of the elephant whose rule it came under"),
];

/// The same filters, and a limit on the number of requests.
const LAST: &[(&str, &str)] = &[
    ("limit", "How many at most: 1 to 1000, 100 if nothing is said"),
    FILTERS[0],
    FILTERS[1],
    FILTERS[2],
    FILTERS[3],
    FILTERS[4],
    FILTERS[5],
    FILTERS[6],
    FILTERS[7],
    FILTERS[8],
    FILTERS[9],
];

/// Returns all operations of the API.
pub const fn routes() -> &'static [Route] {
    ROUTES
}

static ROUTES: &[Route] = &[
    get("/livez", TEXT, "The process is alive.").open(),
    Route {
        problems: &[403, 503],
        ..get("/readyz", TEXT, "It serves, and has not been told to stop.").open()
    },
    get(
        "/metrics",
        Body::Other("application/openmetrics-text"),
        "Counters, gauges and histograms for Prometheus: docs/reference/metrics.md.",
    )
    .open(),
    get("/", Body::Other("text/html"), "The console.").open(),
    get("/v1/openapi.json", Body::Other("application/json"), "This document.").open(),
    Route {
        problems: &[400, 403, 503],
        ..get(
            "/v1/proof",
            Body::Json(of::<Proof>),
            "That whoever answers has the operators' key, for whoever is about to send a token.",
        )
        .query(&[("nonce", "32 hexadecimal digits that nobody could foresee")])
        .open()
    },
    get("/v1/status", Body::Json(of::<Status>), "How the gateway stands."),
    get(
        "/v1/history",
        Body::Json(of::<Columns>),
        "What became of requests: the last quarter of an hour second by second, or the last day minute by minute.",
    )
    .query(&[
        ("range", "15m or 24h; 15m if nothing is said"),
        ("from", "Only rows with this number or a later one"),
    ]),
    get(
        "/v1/events",
        Body::Events,
        "Server-sent events. `seconds` has rows of the history (as /v1/history) since the one that Last-Event-ID names; `anew` has \
         all there are, as the gateway is another or some are missing: forget what was before. `changed` has the revisions \
         of /v1/status whenever one of them is another.",
    ),
    get("/v1/requests", Body::Json(of::<Requests>), "The last requests that have ended, the newest first.")
        .query(LAST),
    get(
        "/v1/requests/{name}",
        Body::Json(of::<Explained>),
        "One of the last 10,000, with the reason in words.",
    )
    .named(),
    get("/v1/tap", Body::Lines(of::<Request>), "Requests as they end, a line each.").query(FILTERS),
    get("/v1/sessions", Body::Json(of::<Sessions>), "What sessions do and what they are worth, as it was learned."),
    get("/v1/kinds", Body::Json(of::<Kinds>), "Which kinds of requests there are."),
    post(
        "/v1/kinds/ask",
        Body::Json(of::<Ask>),
        DECIDED,
        "A kind becomes an elephant by its name, so that a rule can be approved; it is forgotten if none is for an hour.",
    ),
    get("/v1/use", Body::Json(of::<Use>), "What was used of a resource over the last half an hour, and by which kinds.")
        .query(&[("resource", "Its name in the file; the first if nothing is said")])
        .named(),
    get("/v1/elephants", Body::Json(of::<Elephants>), "Which requests cause the load, and what was decided of them."),
    get("/v1/elephants/{number}", DECIDED, "One of them.").named(),
    get("/v1/elephants/{number}/evidence", Body::Json(of::<Evidence>), "What its cost was read from.").named(),
    get(
        "/v1/elephants/{number}/answers",
        Body::Json(of::<Answers>),
        "What these requests and all others got over the last quarter of an hour.",
    )
    .named(),
    Route {
        access: Access::Operator,
        problems: &[400, 401, 403, 404],
        ..post(
            "/v1/elephants/{number}/preview",
            Body::Json(of::<Preview>),
            Body::Json(of::<Previewed>),
            "What a rule would do; nothing is changed.",
        )
    },
    post("/v1/elephants/{number}/approve", DECISION, DECIDED, "A rule holds it back, or the one that does is another."),
    post("/v1/elephants/{number}/try", DECISION, DECIDED, "A rule holds it back for 10s to 10m and is measured."),
    post("/v1/elephants/{number}/reject", DECISION, DECIDED, "It is not to be held back, nor proposed, for a while."),
    post("/v1/elephants/{number}/undo", DECISION, DECIDED, "What was decided does not hold any more."),
    get("/v1/policy", POLICY, "What is in force, and what of it overrides the file."),
    post("/v1/policy/class", Body::Json(of::<SetClass>), POLICY, "A class is treated otherwise for a while."),
    post("/v1/policy/{number}/undo", Body::Json(of::<Undo>), POLICY, "What the file says holds again."),
    post("/v1/bypass", Body::Json(of::<SetBypass>), POLICY, "Nothing is decided for a while, or decisions are taken again."),
    get("/v1/export", Body::Json(of::<Exported>), "What holds beside the file, as it would stand there."),
    get("/v1/audit", Body::Json(of::<Audit>), "Who has decided what, and why.")
        .query(&[("limit", "How many at most: 1 to 1000, 100 if nothing is said")]),
    get("/v1/lab", Body::Json(of::<LabResults>), "Results of the laboratory."),
    Route {
        problems: &[400, 401, 403, 404, 413],
        ..get("/v1/lab/{name}", Body::Json(of::<serde_json::Value>), "One of them, as it was written.")
    },
];
