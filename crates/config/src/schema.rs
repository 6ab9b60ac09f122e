//! The JSON Schema of the configuration file, for editors (`#:schema ./bywash.schema.json`).
//!
//! The schema is derived from the table of keys and the engine's catalogue of policies. Some rules
//! cannot be expressed in a schema, such as ranges of durations and relations between values. They
//! are in the descriptions or only in [`Config::parse`].
//!
//! [`Config::parse`]: crate::Config::parse

use bywash_engine::catalog::Entry;
use serde_json::{Map, Value, json};

use crate::key::{Key, Presence, Section};
use crate::keys;
use crate::kind::ValueKind;

/// Returns the JSON Schema of the configuration file, draft 2020-12.
pub fn schema() -> Value {
    let mut properties = properties(keys::ROOT.keys);
    for section in keys::SECTIONS.iter().filter(|section| !section.name.is_empty()) {
        properties.insert(section.name.to_string(), table(section));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "bywash",
        "description": "The configuration file of bywash, an overload-control gateway.",
        "type": "object",
        "additionalProperties": false,
        "required": [keys::VERSION.name, keys::UPSTREAM.name],
        "properties": properties,
    })
}

fn table(section: &Section) -> Value {
    let mut schema = match section.name {
        _ if !section.policies().is_empty() => by_policy(section),
        name if name == keys::CLASS.name => classes(),
        name if name == keys::DATABASE.name => databases(),
        name if name == keys::AGENT.name => tables(keys::AGENTS, section.keys),
        name if name == keys::RESOURCE.name => tables(keys::RESOURCES, section.keys),
        name if name == keys::THROTTLE.name => tables(keys::THROTTLES, section.keys),
        _ => object(section.keys),
    };
    schema["description"] = json!(section.about);
    schema
}

fn object(keys: &[Key]) -> Value {
    let required = keys.iter().filter(|key| key.presence == Presence::Required);
    let required: Vec<&str> = required.map(|key| key.name).collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties(keys),
    })
}

fn properties(keys: &[Key]) -> Map<String, Value> {
    keys.iter().map(|key| (key.name.to_string(), property(key))).collect()
}

/// Returns the schema of a table with a policy: one branch per policy, because each policy has its
/// own parameters.
fn by_policy(section: &Section) -> Value {
    let branch = |policy: &Entry| branch(&section.keys[0], policy);
    let branches: Vec<Value> = section.policies().iter().map(branch).collect();
    json!({ "type": "object", "oneOf": branches })
}

fn branch(key: &Key, policy: &Entry) -> Value {
    let mut schema = object(&keys::parameters(policy));
    let mut name = property(key);
    name["const"] = json!(policy.name);
    schema["properties"][key.name] = name;
    if policy.name != key.text {
        schema["required"] = json!([key.name]);
    }
    schema["description"] = json!(policy.about);
    schema
}

fn classes() -> Value {
    json!({
        "type": "object",
        "maxProperties": keys::CLASSES + 1,
        "propertyNames": { "pattern": "^[a-z][a-z0-9_-]{0,31}$" },
        "properties": { keys::OTHER: object(&keys::of_other()) },
        "additionalProperties": object(keys::CLASS.keys),
    })
}

fn databases() -> Value {
    let mut schema = tables(keys::DATABASES, keys::DATABASE.keys);
    schema["propertyNames"]["not"] = json!({ "const": "self" });
    schema
}

/// Returns the schema of a section that consists of at most `most` named tables.
fn tables(most: usize, keys: &[Key]) -> Value {
    json!({
        "type": "object",
        "maxProperties": most,
        "propertyNames": { "pattern": "^[A-Za-z0-9_-]{1,32}$" },
        "additionalProperties": object(keys),
    })
}

fn property(key: &Key) -> Value {
    let mut schema = takes(&key.kind);
    schema["description"] = json!(format!("{} Takes {}.", key.why, key.kind.takes()));
    let text = key.kind.json(&key.text);
    match key.presence {
        Presence::Default => schema["default"] = text,
        Presence::Required | Presence::Optional => schema["examples"] = json!([text]),
    }
    schema
}

fn takes(kind: &ValueKind) -> Value {
    match kind {
        ValueKind::Exactly(only) => json!({ "const": only }),
        ValueKind::Whole { min, max } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        ValueKind::Number { min, max: f64::MAX } => json!({ "type": "number", "minimum": min }),
        ValueKind::Number { min, max } => {
            json!({ "type": "number", "minimum": min, "maximum": max })
        }
        ValueKind::TimeSpan { .. } => {
            json!({ "type": "string", "pattern": "^[0-9]+(\\.[0-9]*)?\\s*(ns|us|ms|s|m|h)$" })
        }
        ValueKind::Bytes { min, max } => json!({
            "type": ["integer", "string"],
            "minimum": min,
            "maximum": max,
            "pattern": "^[0-9]+ *(B|KiB|MiB|GiB)$",
        }),
        ValueKind::Word(_) | ValueKind::Policy(_) => json!({ "enum": kind.words() }),
        ValueKind::Truth => json!({ "type": "boolean" }),
        ValueKind::Admin => json!({ "type": "string", "pattern": "^(.+:[0-9]{1,5}|unix:/.+)$" }),
        ValueKind::Path => json!({ "type": "string", "pattern": PATH }),
        ValueKind::Address => json!({ "type": "string", "pattern": "^.+:[0-9]{1,5}$" }),
        ValueKind::Text { regex, .. } => json!({ "type": "string", "pattern": regex }),
        ValueKind::Texts { regex, least, most, alone: false, .. } => list(regex, *least, *most),
        ValueKind::Texts { regex, least, most, alone: true, .. } => json!({
            "oneOf": [{ "type": "string", "pattern": regex }, list(regex, *least, *most)],
        }),
        ValueKind::Paths { most } => list(PATH, 1, *most),
    }
}

/// The regular expression of a path: a text without control characters.
const PATH: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";

fn list(regex: &str, least: usize, most: usize) -> Value {
    let mut schema = json!({
        "type": "array",
        "minItems": least,
        "items": { "type": "string", "pattern": regex },
    });
    if most != usize::MAX {
        schema["maxItems"] = json!(most);
    }
    schema
}
