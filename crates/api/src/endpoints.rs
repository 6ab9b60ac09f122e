//! The table of all operations of the admin listener. `openapi` generates the `OpenAPI` document
//! from this table, and tests compare the gateway's responses with it.

use bywash_history::{Columns, HistorySummary, WindowSums};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{
    Answers, Ask, Audit, Decision, Elephant, Elephants, Evidence, Explained, Exported, Fleet,
    LabResults, Policy, Populations, Preview, Previewed, Proof, RankPopulation, Request, Requests,
    Routes, Sessions, SetBypass, SetClass, Status, Undo, Use,
};

/// The callers that may use an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Any client that reaches the listener.
    Anybody,
    /// Clients with an operator token, and clients of the unix socket.
    Operator,
    /// Clients with an operator token that is not read-only, and clients of the unix socket.
    Decider,
}

/// The format of the body of a request or response.
#[derive(Clone, Copy)]
pub enum Body {
    /// One JSON document with this schema.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// One JSON document with this schema per line, until the client closes the connection.
    Lines(fn(&mut SchemaGenerator) -> Schema),
    /// A stream of server-sent events.
    Events,
    /// A format other than JSON, with this media type.
    Other(&'static str),
}

/// An operation of the API: a method on a path.
#[derive(Clone, Copy)]
pub struct Endpoint {
    /// The method: `GET` (which includes `HEAD`) or `POST`.
    pub method: &'static str,
    /// The path; a segment in braces is a parameter.
    pub path: &'static str,
    /// The callers that may use the operation.
    pub access: Access,
    /// The purpose of the operation, as the `OpenAPI` document describes it.
    pub about: &'static str,
    /// The query parameters: the name and the description of each.
    pub query: &'static [(&'static str, &'static str)],
    /// The body of the request; `None` if the operation takes none.
    pub sends: Option<Body>,
    /// The body of the response with status 200.
    pub gets: Body,
    /// The possible error statuses; each response has a `Problem` as its body.
    pub problems: &'static [u16],
}

const fn get(path: &'static str, gets: Body, about: &'static str) -> Endpoint {
    Endpoint {
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

const fn post(path: &'static str, sends: Body, gets: Body, about: &'static str) -> Endpoint {
    Endpoint {
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

impl Endpoint {
    const fn open(self) -> Self {
        Self { access: Access::Anybody, problems: &[403], ..self }
    }

    const fn query(self, query: &'static [(&'static str, &'static str)]) -> Self {
        Self { query, problems: &[400, 401, 403], ..self }
    }

    const fn remote(self) -> Self {
        Self { problems: &[400, 401, 403, 404, 503], ..self }
    }

    const fn named(self) -> Self {
        Self { problems: &[400, 401, 403, 404], ..self }
    }
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Returns the schema of a response of `/v1/history`: either rows, or the sums of one window.
fn history(generator: &mut SchemaGenerator) -> Schema {
    let (rows, window) = (of::<Columns>(generator), of::<WindowSums>(generator));
    json_schema!({ "oneOf": [rows, window] })
}

const TEXT: Body = Body::Other("text/plain");
const DECIDED: Body = Body::Json(of::<Elephant>);
const DECISION: Body = Body::Json(of::<Decision>);
const POLICY: Body = Body::Json(of::<Policy>);

/// The query parameters that filter `/v1/requests` and `/v1/tap`, each with its description. A
/// request is shown if it matches all that are given.
const FILTERS: &[(&str, &str)] = &[
    ("class", "Name of the class"),
    ("level", "Name of the level"),
    ("outcome", "The outcome"),
    ("decision", "run, shed, stop or wait"),
    ("reason", "The reason"),
    ("status", "Status of the response"),
    ("session", "Name of the session, as the API shows it"),
    ("standing", "Standing of the session"),
    ("client", "Address of the client"),
    ("rule", "Number of the elephant whose rule applied to the request"),
];

/// The query parameters of `/v1/requests`: the filters, and a limit on the number of requests.
const LAST: &[(&str, &str)] = &[
    ("limit", "The maximum number of entries: 1 to 1000; 100 if absent"),
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

/// Returns the table of all operations of the API.
pub const fn endpoints() -> &'static [Endpoint] {
    ENDPOINTS
}

static ENDPOINTS: &[Endpoint] = &[
    get("/livez", TEXT, "Returns 200 while the process is alive.").open(),
    Endpoint {
        problems: &[403, 503],
        ..get("/readyz", TEXT, "Returns 200 while the gateway serves and is not stopping.").open()
    },
    get(
        "/metrics",
        Body::Other("application/openmetrics-text"),
        "Returns counters, gauges and histograms for Prometheus: docs/reference/metrics.md.",
    )
    .open(),
    get("/", Body::Other("text/html"), "Returns the console.").open(),
    get("/v1/openapi.json", Body::Other("application/json"), "Returns this document.").open(),
    Endpoint {
        problems: &[400, 403, 503],
        ..get(
            "/v1/proof",
            Body::Json(of::<Proof>),
            "Proves that the gateway has the operators' key, before a client sends a token.",
        )
        .query(&[("nonce", "32 hexadecimal digits that nobody can predict")])
        .open()
    },
    get("/v1/status", Body::Json(of::<Status>), "Returns the state of the gateway."),
    get(
        "/v1/history",
        Body::Json(history),
        "Returns the outcomes of requests: the last 15 minutes second by second, or the last day \
         minute by minute; with `window`, sums and response times of a window.",
    )
    .query(&[
        ("range", "15m or 24h; 15m if absent"),
        ("from", "Only rows with this number or a later one"),
        ("window", "10s, 60s, 15m or 24h: WindowSums instead of rows. Excludes `range` and `from`"),
    ]),
    get(
        "/v1/events",
        Body::Events,
        "Sends events. `seconds` has the rows of the history (as /v1/history) since the one that \
         Last-Event-ID names. `anew` has all rows, because the gateway is another one or some rows \
         are missing: discard earlier ones. `changed` has the revisions of /v1/status whenever one \
         of them changes.",
    ),
    get(
        "/v1/requests",
        Body::Json(of::<Requests>),
        "Returns the last requests that have ended, the newest first.",
    )
    .query(LAST),
    get(
        "/v1/requests/{name}",
        Body::Json(of::<Explained>),
        "Returns one of the last 10,000 requests, with its reason explained.",
    )
    .named(),
    get("/v1/tap", Body::Lines(of::<Request>), "Sends requests as they end, one per line.")
        .query(FILTERS),
    get(
        "/v1/sessions",
        Body::Json(of::<Sessions>),
        "Returns what sessions do and what they are worth, as the gateway has learned it.",
    ),
    get(
        "/v1/populations",
        Body::Json(of::<Populations>),
        "Returns the populations of clients, what their sessions do, and what they were given.",
    ),
    get(
        "/v1/fleet",
        Body::Json(of::<Fleet>),
        "Returns the gateways that share the application's slots, and what each has.",
    )
    .named(),
    get(
        "/v1/fleet/{name}/status",
        Body::Json(of::<Status>),
        "Returns `/v1/status` of the gateway with this name.",
    )
    .remote(),
    get(
        "/v1/fleet/{name}/sessions",
        Body::Json(of::<Sessions>),
        "Returns `/v1/sessions` of the gateway with this name.",
    )
    .remote(),
    get(
        "/v1/fleet/{name}/populations",
        Body::Json(of::<Populations>),
        "Returns `/v1/populations` of the gateway with this name.",
    )
    .remote(),
    get(
        "/v1/fleet/{name}/elephants",
        Body::Json(of::<Elephants>),
        "Returns `/v1/elephants` of the gateway with this name.",
    )
    .remote(),
    get("/v1/fleet/{name}/policy", POLICY, "Returns `/v1/policy` of the gateway with this name.")
        .remote(),
    get(
        "/v1/fleet/{name}/history",
        Body::Json(of::<HistorySummary>),
        "Returns the answered, refused and waiting requests of the gateway with this name: the last \
         15 minutes in steps of ten seconds. This window is fixed.",
    )
    .remote(),
    get(
        "/v1/routes",
        Body::Json(of::<Routes>),
        "Returns the routes that the gateway distinguishes.",
    ),
    post(
        "/v1/routes/ask",
        Body::Json(of::<Ask>),
        DECIDED,
        "Makes a route an elephant by its name, so that a rule for it can be approved. If none is \
         approved for an hour, the gateway forgets the elephant.",
    ),
    get(
        "/v1/use",
        Body::Json(of::<Use>),
        "Returns the use of a resource over the last 30 minutes, and the routes that caused it.",
    )
    .query(&[(
        "resource",
        "Name of the resource in the configuration file; the first resource if absent",
    )])
    .named(),
    get(
        "/v1/elephants",
        Body::Json(of::<Elephants>),
        "Returns the elephants: the requests that cause the load, and the decisions about them.",
    ),
    get("/v1/elephants/{number}", DECIDED, "Returns one elephant.").named(),
    get(
        "/v1/elephants/{number}/evidence",
        Body::Json(of::<Evidence>),
        "Returns the evidence for the cost of an elephant.",
    )
    .named(),
    get(
        "/v1/elephants/{number}/answers",
        Body::Json(of::<Answers>),
        "Returns the responses to an elephant's requests and to all others over the last 15 \
         minutes.",
    )
    .named(),
    Endpoint {
        access: Access::Operator,
        problems: &[400, 401, 403, 404],
        ..post(
            "/v1/elephants/{number}/preview",
            Body::Json(of::<Preview>),
            Body::Json(of::<Previewed>),
            "Predicts the effect of a rule. Changes nothing.",
        )
    },
    post(
        "/v1/elephants/{number}/approve",
        DECISION,
        DECIDED,
        "Approves a rule for an elephant, or changes the rule in force.",
    ),
    post(
        "/v1/elephants/{number}/try",
        DECISION,
        DECIDED,
        "Tries a rule for 10s to 10m and measures its effect.",
    ),
    post(
        "/v1/elephants/{number}/reject",
        DECISION,
        DECIDED,
        "Rejects a proposal: for a while, the gateway neither holds these requests back nor \
         proposes it.",
    ),
    post("/v1/elephants/{number}/undo", DECISION, DECIDED, "Ends the decision about an elephant."),
    get(
        "/v1/policy",
        POLICY,
        "Returns the policy in force and the overrides of the configuration file.",
    ),
    post(
        "/v1/policy/class",
        Body::Json(of::<SetClass>),
        POLICY,
        "Overrides the mode of a class for a limited time.",
    ),
    post(
        "/v1/policy/population",
        Body::Json(of::<RankPopulation>),
        POLICY,
        "Overrides the level of a population for a limited time.",
    ),
    post(
        "/v1/policy/{number}/undo",
        Body::Json(of::<Undo>),
        POLICY,
        "Ends an override: the setting of the configuration file is in force again.",
    ),
    post(
        "/v1/bypass",
        Body::Json(of::<SetBypass>),
        POLICY,
        "Starts a bypass for a limited time, or ends it. While bypassed, the gateway takes no \
         decisions.",
    ),
    get(
        "/v1/export",
        Body::Json(of::<Exported>),
        "Returns the overrides and rules that are not in the configuration file, in its syntax.",
    ),
    get(
        "/v1/audit",
        Body::Json(of::<Audit>),
        "Returns the last decisions, each with its author and reason.",
    )
    .query(&[("limit", "The maximum number of entries: 1 to 1000; 100 if absent")]),
    get(
        "/v1/lab",
        Body::Json(of::<LabResults>),
        "Returns a list of the results of the laboratory.",
    ),
    Endpoint {
        problems: &[400, 401, 403, 404, 413],
        ..get(
            "/v1/lab/{name}",
            Body::Json(of::<serde_json::Value>),
            "Returns one result, as it was written.",
        )
    },
];
