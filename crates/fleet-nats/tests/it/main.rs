//! Tests of gateways that share slots over real NATS servers.

mod fake;
mod on_nats;
