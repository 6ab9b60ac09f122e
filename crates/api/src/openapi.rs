//! The `OpenAPI` 3.1 document of the API. Its schemas are JSON Schema.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::endpoints::{Access, Body, Endpoint, endpoints};
use crate::problem::Problem;
use crate::status::Revisions;

/// Returns the `OpenAPI` document, generated from the table of operations and the API's types.
pub fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for endpoint in endpoints() {
        let operation = operation(endpoint, &mut schemas);
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method.to_lowercase()] = operation;
    }
    // No endpoint has `Revisions` as its body: only the text about `/v1/events` names it.
    let _ = schemas.subschema_for::<Revisions>();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "bywash",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "What operators can read and decide. On the unix socket, a request \
                            needs no token. On loopback, it needs one: `bywash console` prints \
                            one, and `bywash` makes one from the operators' key. The `Host` must \
                            be a loopback address or `localhost`. A page in a browser that sends a \
                            request must come from the gateway itself.",
        },
        "servers": [{ "url": "http://127.0.0.1:7070" }],
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "Signed with the operators' key." }
            },
        },
    })
}

fn operation(endpoint: &Endpoint, schemas: &mut SchemaGenerator) -> Value {
    let in_path = endpoint.path.split(['{', '}']).skip(1).step_by(2).map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    });
    let in_query = endpoint.query.iter().map(|(name, about)| {
        json!({ "name": name, "in": "query", "description": about, "schema": { "type": "string" } })
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let mut responses = Map::new();
    responses.insert(
        "200".into(),
        json!({ "description": "Done.", "content": content(&endpoint.gets, schemas) }),
    );
    for status in endpoint.problems {
        let problem = schemas.subschema_for::<Problem>();
        let content = json!({ "application/problem+json": { "schema": problem } });
        responses.insert(
            status.to_string(),
            json!({ "description": meaning(*status), "content": content }),
        );
    }
    let mut operation = json!({
        "operationId": operation_id(endpoint),
        "summary": endpoint.about,
        "parameters": parameters,
        "responses": responses,
        "security": match endpoint.access {
            Access::Anybody => json!([]),
            Access::Operator | Access::Decider => json!([{ "token": [] }]),
        },
    });
    if let Some(sends) = &endpoint.sends {
        operation["requestBody"] = json!({ "required": true, "content": content(sends, schemas) });
    }
    operation
}

fn operation_id(endpoint: &Endpoint) -> String {
    let words =
        endpoint.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.filter(|word| *word != "v1").collect();
    let words = if words.is_empty() { "console".to_owned() } else { words.join("_") };
    format!("{}_{words}", endpoint.method.to_lowercase())
}

fn content(body: &Body, schemas: &mut SchemaGenerator) -> Value {
    let (kind, schema) = match body {
        Body::Json(schema) => ("application/json", json!(schema(schemas))),
        Body::Lines(schema) => ("application/x-ndjson", json!(schema(schemas))),
        Body::Events => ("text/event-stream", json!({ "type": "string" })),
        Body::Other(kind) => (*kind, json!({ "type": "string" })),
    };
    let mut content = Map::new();
    content.insert(kind.into(), json!({ "schema": schema }));
    Value::Object(content)
}

const fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The request cannot be parsed, or its values make no sense.",
        401 => "The token is missing, has expired, or was not signed by this gateway.",
        403 => {
            "The token does not permit the operation, or the page that sent the request is not the \
             console."
        }
        404 => "The path or the item does not exist.",
        409 => "Another operator has decided meanwhile.",
        _ => "The operation is not possible now.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends every `$ref` in the document to `found`.
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(reference)) = map.get("$ref") {
                    found.push(reference.clone());
                }
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = openapi();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 50, "{}", found.len());
        for reference in found {
            let pointer = reference.strip_prefix('#').expect("in this document");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_and_every_path_one_method_of_each() {
        let document = openapi();
        let paths = document["paths"].as_object().expect("paths");
        let operations: Vec<&Value> = paths
            .values()
            .flat_map(|path| path.as_object().expect("operations").values())
            .collect();
        assert_eq!(operations.len(), endpoints().len());
        let names: std::collections::BTreeSet<_> =
            operations.iter().map(|operation| operation["operationId"].to_string()).collect();
        assert_eq!(names.len(), operations.len());
    }

    #[test]
    fn what_changes_something_is_a_post_for_deciders() {
        for endpoint in endpoints() {
            let decides = endpoint.access == Access::Decider;
            let asks = endpoint.path.ends_with("/preview");
            assert_eq!(endpoint.method == "POST", decides || asks, "{}", endpoint.path);
        }
    }
}
