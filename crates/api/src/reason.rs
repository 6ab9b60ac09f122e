//! The reasons of decisions, for the `OpenAPI` document.
//!
//! The API's types have a reason as text, so that a client can show a reason that only a later
//! gateway gives. The document lists the reasons of this version, from the engine's own list.

use std::borrow::Cow;

use bywash_engine::Reason;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The schema of a reason: the identifiers, each with the explanation that operators read.
pub(crate) enum ReasonName {}

impl JsonSchema for ReasonName {
    fn schema_name() -> Cow<'static, str> {
        "Reason".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = |reason: Reason| {
            json!({
                "type": "string",
                "const": reason.name(),
                "description": reason.explanation(),
            })
        };
        let all: Vec<Value> = Reason::ALL.map(one).into();
        json_schema!({
            "description": "The reason for a decision about a request. Later versions may have more.",
            "oneOf": all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::openapi;

    #[test]
    fn the_document_lists_every_reason_that_a_request_may_have() {
        let document = openapi();
        let schemas = &document["components"]["schemas"];
        for request in ["Request", "Explained"] {
            let reason = &schemas[request]["properties"]["reason"];
            assert_eq!(reason["anyOf"][0]["$ref"], "#/components/schemas/Reason", "{request}");
        }
        let listed = schemas["Reason"]["oneOf"].as_array().expect("a list");
        let listed: Vec<&str> = listed.iter().filter_map(|one| one["const"].as_str()).collect();
        assert_eq!(listed, Reason::ALL.map(Reason::name));
    }
}
