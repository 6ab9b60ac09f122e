//! `/v1/fleet`: the gateways that share the slots of one application.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a fleet, as one of its gateways sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fleet {
    /// The name of the gateway that answers.
    pub name: String,
    /// Whether this gateway is connected to a NATS server.
    pub is_connected: bool,
    /// The last fault of the connection; `null` if there was none since it was made.
    pub problem: Option<String>,
    /// The gateway that divides the slots for this one; `null` if this gateway uses its own share.
    pub allocator: Option<String>,
    /// The configured limit of all gateways together, in slots.
    pub limit: u32,
    /// The slots that this gateway owns and uses without contact to others.
    pub share: u32,
    /// The slots that this gateway has now.
    pub slots: u32,
    /// The differences between the gateways that an operator should correct. None of them stops service.
    pub warnings: Vec<String>,
    /// The gateways of the fleet, by name.
    pub gateways: Vec<FleetGateway>,
    /// The number of messages that this gateway has sent since its start.
    pub sent: u64,
    /// The number of messages that this gateway has received since its start, with those that it
    /// ignored.
    pub received: u64,
    /// The number of messages that this gateway sends and receives in a second, over the last five
    /// seconds; `null` in the first five.
    #[serde(default)]
    pub messages_per_s: Option<f64>,
    /// The number of ignored messages since the start, by reason.
    pub rejected: BTreeMap<String, u64>,
}

/// One gateway of a fleet. The numbers are those of its last message. Each is `null` if there was no
/// message, or if the gateway's program has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetGateway {
    /// The gateway's name.
    pub name: String,
    /// Whether its program is proven to have ended. Only the gateway that divides the slots knows.
    pub is_down: bool,
    /// Whether the numbers are at most three seconds old, or in a fleet of more than 100 gateways at
    /// most three times as old as the gateway sends them.
    pub is_current: bool,
    /// The age of the numbers.
    pub heard_ms: Option<u64>,
    /// The time since this gateway has read the last requests of the other one; `null` for this
    /// gateway itself, and if it never has.
    #[serde(default)]
    pub observed_ms: Option<u64>,
    /// The time of the gateway's clock minus that of this gateway's clock; `null` for this gateway
    /// itself.
    pub clock_ms: Option<i64>,
    /// The version of the gateway's program.
    pub version: Option<String>,
    /// The limit of all gateways together, in slots, by the gateway's configuration.
    pub limit: Option<u32>,
    /// The slots that the gateway has.
    pub slots: Option<u32>,
    /// The number of requests that hold a slot.
    pub running: Option<u32>,
    /// The number of requests that wait for a slot.
    pub waiting: Option<u32>,
    /// The number of slots that the offered work would keep busy.
    pub demand: Option<f64>,
}
