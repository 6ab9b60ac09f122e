//! `/v1/lab`: results of the laboratory, from `console.results` of the file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabResults {
    /// The folder, if the file names one.
    pub folder: Option<String>,
    /// Why it cannot be read.
    pub trouble: Option<String>,
    /// The newest first. Each is at `/v1/lab/NAME`, as `bywash lab … --json` has written it.
    pub results: Vec<LabResult>,
}

/// A file with a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabResult {
    /// Of the file.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When it was written, in milliseconds since 1970.
    pub written_ms: u64,
}
